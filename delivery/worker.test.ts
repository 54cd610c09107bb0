import { Code, ConnectError } from '@connectrpc/connect'
import { describe, expect, it } from 'vitest'
import { ErrorInfoSchema } from '#proto/error/v1/error_pb.js'
import { until } from '../test/support/until.ts'
import type { Sender } from './sender.ts'
import { createTestCore, createTestSender, deliveries, startWorker } from './test/test-worker.ts'
import type { WorkerOptions } from './worker.ts'

describe('the delivery worker', () => {
  it('the delivery worker opens an offer claim on each added core in addition to the poll, and sends the deliveries that an offer returns', async () => {
    const [polled, other] = [createTestCore(), createTestCore()]
    const network = createTestSender()
    let follower: Parameters<WorkerOptions['followCores']>[0] | undefined
    const followCores: WorkerOptions['followCores'] = (given) => {
      follower = given
      given.added('http://polled', polled.client)
    }
    startWorker({ core: polled.client, followCores, sender: network.sender })
    const offers = ({ core }: typeof other) => core.claims.filter(({ onlyNew }) => onlyNew).length
    await until('an offer', () => offers(polled) === 1)
    expect(polled.core.claims.some(({ onlyNew }) => !onlyNew)).toBe(true)
    follower!.added('http://other', other.client)
    await until('an offer with the other core', () => offers(other) === 1)
    other.core.add(...deliveries('new', 1))
    await until('its report, and the next offer', () => polled.core.recorded.size === 1 && offers(other) === 2)
    // After a core is removed, it must get no further claims.
    follower!.removed('http://other')
    polled.core.add(...deliveries('due', 5))
    await until('the rest', () => polled.core.recorded.size === 6)
    expect(offers(other)).toBe(2)
  })

  it('the delivery worker sends and reports each due delivery once', async () => {
    const { core, client } = createTestCore()
    const network = createTestSender()
    core.add(...deliveries('a', 30), ...deliveries('b', 30))
    const worker = startWorker({ core: client, sender: network.sender })
    await until('all results', () => core.recorded.size === 60)
    core.add(...deliveries('c', 1))
    await until('what became due while it waited', () => core.recorded.size === 61)
    expect(worker.isReady()).toBe(true)
    expect([...core.recorded.values()].every(({ outcome }) => outcome.case === 'response')).toBe(true)
    expect(core.records.flat()).toHaveLength(61)
  })

  it('the delivery worker never has more concurrent requests than allowed, in total and per destination', async () => {
    const { core, client } = createTestCore()
    const network = createTestSender()
    core.add(...deliveries('a', 100), ...deliveries('b', 100), ...deliveries('c', 7))
    startWorker({ core: client, sender: network.sender, concurrency: 8, perDestination: 3 })
    await until('all results', () => core.recorded.size === 207)
    expect(network.mostAtOnce()).toBeLessThanOrEqual(8)
    for (const url of ['a', 'b', 'c']) expect(network.most(url)).toBeLessThanOrEqual(3)
  })

  it('the delivery worker sends to working destinations while many destinations hang', async () => {
    const { core, client } = createTestCore()
    const network = createTestSender()
    const hung = Array.from({ length: 8 }, (_, index) => `hung-${index}`)
    for (const url of hung) network.hang(url)
    core.add(...hung.flatMap((url) => deliveries(url, 20)))
    startWorker({ core: client, sender: network.sender, concurrency: 20, perDestination: 5 })
    await until('the hanging ones to be tried', () => hung.every((url) => network.sending(url) > 0))
    for (let round = 0; round < 5; round++) {
      core.add(...deliveries(`good-${round}`, 20))
      await until('the good ones', () => core.recorded.size === 20 * (round + 1))
    }
    expect(hung.every((url) => network.sending(url) > 0)).toBe(true)
    for (const url of hung) network.release(url)
    await until('everything', () => core.recorded.size === 100 + 160)
  })

  it('the delivery worker claims more deliveries as soon as a full destination has room, even while a claim is open', async () => {
    const { core, client } = createTestCore()
    const network = createTestSender()
    network.hang('a')
    core.add(...deliveries('a', 12))
    startWorker({ core: client, sender: network.sender, waitMs: 30_000 })
    await until('a full destination', () => network.sending('a') === 5)
    network.release('a')
    await until('the rest', () => core.recorded.size === 12)
  })

  it('the delivery worker drains one destination that answers quickly without waiting for polls, and claims in advance for it', async () => {
    const { core, client } = createTestCore()
    const network = createTestSender()
    core.add(...deliveries('a', 600))
    startWorker({ core: client, sender: network.sender, concurrency: 50, perDestination: 10 })
    await until('all results', () => core.recorded.size === 600)
    expect(network.most('a')).toBe(10)
    expect(core.claims.filter(({ waitMs }) => waitMs > 0).length).toBeLessThan(20)
    expect(core.claims.some(({ ahead }) => (ahead.a ?? 0) > 10)).toBe(true)
  })

  it('the delivery worker claims nothing in advance for a destination that hangs', async () => {
    const { core, client } = createTestCore()
    const network = createTestSender()
    network.hang('a')
    core.add(...deliveries('a', 30))
    startWorker({ core: client, sender: network.sender })
    await until('a full destination', () => network.sending('a') === 5)
    await until('a claim while it is full', () => core.claims.some(({ underWay }) => underWay.a === 5))
    expect(core.claims.every(({ ahead }) => ahead.a === undefined)).toBe(true)
    expect(core.due).toHaveLength(25)
    network.release('a')
    await until('the rest', () => core.recorded.size === 30)
  })

  it('the delivery worker renews the leases of slow deliveries until a core accepts their results', async () => {
    const { core, client } = createTestCore()
    core.leaseMs = 40
    const network = createTestSender()
    network.hang('a')
    core.add(...deliveries('a', 8), ...deliveries('b', 5))
    const noReports = Promise.withResolvers<void>()
    core.onRecord = async ({ results }) => {
      if (results.some(({ deliveryId }) => deliveryId.startsWith('dlv_a'))) await noReports.promise
    }
    startWorker({ core: client, sender: network.sender })
    await until('the quick ones', () => core.recorded.size === 5)
    const renewed = () => new Set(core.renewals.flatMap(({ claims }) => claims.map(({ deliveryId }) => deliveryId)))
    await until('renewals', () => renewed().size >= 5 && core.renewals.length > 3)
    network.release('a')
    const before = core.renewals.length
    await until('renewals while the core has not answered the report', () => core.renewals.length > before + 3)
    noReports.resolve()
    await until('all results', () => core.recorded.size === 13)
    const after = core.renewals.length
    await new Promise((resolve) => setTimeout(resolve, 60))
    expect(core.renewals.length).toBeLessThanOrEqual(after + 1)
  })

  it('the delivery worker does not send a waiting delivery whose lease was lost', async () => {
    const { core, client } = createTestCore()
    core.leaseMs = 40
    const network = createTestSender()
    network.hang('a')
    // Two concurrent claims return one delivery each, so the second delivery waits.
    const sent: string[] = []
    const sender: Sender = {
      ...network.sender,
      send: (request, signal) => {
        sent.push(request.body.length.toString())
        return network.sender.send(request, signal)
      },
    }
    core.ignoresRoom = true
    core.add(...deliveries('a', 2))
    startWorker({ core: client, sender, perDestination: 1 })
    await until('both renewed', () => core.renewals.some(({ claims }) => claims.length === 2))
    for (const { deliveryId } of core.renewals.flatMap(({ claims }) => claims)) core.lost.add(deliveryId)
    const before = core.renewals.length
    await until('one more look', () => core.renewals.length > before)
    network.release('a')
    await until('both results', () => core.recorded.size === 2)
    expect(sent).toHaveLength(1)
    expect([...core.recorded.values()].map(({ outcome }) => outcome.case).toSorted()).toEqual(['released', 'response'])
  })

  it('the delivery worker reports results that arrive during a report in one batch', async () => {
    const { core, client } = createTestCore()
    const first = Promise.withResolvers<void>()
    core.onRecord = async () => {
      if (core.records.length === 0) await first.promise
    }
    core.add(...deliveries('a', 1))
    startWorker({ core: client, sender: createTestSender().sender, concurrency: 40, perDestination: 5 })
    await until('the first claim', () => core.due.length === 0)
    core.add(...deliveries('b', 5), ...deliveries('c', 5), ...deliveries('d', 5))
    await until('all claimed', () => core.due.length === 0)
    await new Promise((resolve) => setTimeout(resolve, 20))
    first.resolve()
    await until('all results', () => core.recorded.size === 16)
    expect(core.records.length).toBeLessThan(5)
  })

  it('the delivery worker continues after an outage of the cores and keeps results until they are accepted', async () => {
    const { core, client } = createTestCore()
    const network = createTestSender()
    network.hang('a')
    core.add(...deliveries('a', 3))
    const worker = startWorker({ core: client, sender: network.sender })
    await until('three running attempts', () => network.sending('a') === 3)
    core.down = true
    network.release('a')
    core.add(...deliveries('b', 2))
    await until('the worker to notice', () => !worker.isReady())
    expect(core.recorded.size).toBe(0)
    core.down = false
    core.add(...deliveries('c', 1))
    await until('all results', () => core.recorded.has('att_dlv_a_0') && core.recorded.has('att_dlv_c_0'))
    await until('readiness', () => worker.isReady())
  })

  it('the delivery worker repeats a report if its answer is lost, and the repeat changes nothing', async () => {
    const { core, client } = createTestCore()
    let lost = 0
    core.onRecord = async ({ results }) => {
      if (lost++ > 0) return
      for (const result of results) core.recorded.set(result.attemptId, result)
      throw new ConnectError('cut off', Code.Unavailable)
    }
    core.add(...deliveries('a', 1))
    startWorker({ core: client, sender: createTestSender().sender })
    await until('the repeat', () => core.records.length === 1)
    expect(core.records[0]?.[0]).toMatchObject({ deliveryId: 'dlv_a_0', attemptId: 'att_dlv_a_0', claimId: 'clm_1' })
    expect(core.recorded.size).toBe(1)
  })

  it('the delivery worker drops one result and reports the others if the core rejects this result', async () => {
    const { core, client } = createTestCore()
    core.onRecord = async ({ results }) => {
      if (!results.some(({ deliveryId }) => deliveryId === 'dlv_a_2')) return
      const detail = { desc: ErrorInfoSchema, value: { code: 'ValidationFailed' } }
      throw new ConnectError('no', Code.InvalidArgument, undefined, [detail])
    }
    core.add(...deliveries('a', 5), ...deliveries('b', 5))
    startWorker({ core: client, sender: createTestSender().sender })
    await until('the others', () => core.recorded.size === 9)
    expect(core.recorded.has('att_dlv_a_2')).toBe(false)
    core.add(...deliveries('c', 1))
    await until('the next', () => core.recorded.size === 10)
  })

  it('the delivery worker finishes running attempts on stop and sends no further claims', async () => {
    const { core, client } = createTestCore()
    const network = createTestSender()
    network.hang('a')
    core.add(...deliveries('a', 2))
    const worker = startWorker({ core: client, sender: network.sender })
    await until('two running attempts', () => network.sending('a') === 2)
    const stopping = worker.stop()
    core.add(...deliveries('b', 2))
    network.release('a')
    await stopping
    expect([...core.recorded.values()].map(({ outcome }) => outcome.case)).toEqual(['response', 'response'])
    expect(core.due).toHaveLength(2)
  })

  it('the delivery worker aborts running attempts after the grace time on stop, and returns waiting deliveries to the queue', async () => {
    const { core, client } = createTestCore()
    const network = createTestSender()
    network.hang('a')
    core.add(...deliveries('a', 3))
    const worker = startWorker({ core: client, sender: network.sender, graceMs: 20 })
    await until('three running attempts', () => network.sending('a') === 3)
    await worker.stop()
    expect([...core.recorded.values()].map(({ outcome }) => outcome.case)).toEqual(['released', 'released', 'released'])
  })
})
