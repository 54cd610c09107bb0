import { Code, ConnectError } from '@connectrpc/connect'
import { describe, expect, it } from 'vitest'
import { createCorePool } from '../core-client/core-pool.ts'
import { itLong } from '../test/support/is-long.ts'
import { until } from '../test/support/until.ts'
import type { Sender } from './sender.ts'
import { createTestCore, createTestSender, deliveries, nodeOf, startWorker } from './test/test-worker.ts'

describe('the delivery worker', () => {
  it('the delivery worker divides its room between the cores, and gives it all to the core that is left', async () => {
    const [first, second] = [createTestCore(), createTestCore()]
    const network = createTestSender()
    const [one, other] = [nodeOf(first.transport, 0), nodeOf(second.transport, 1)]
    const pool = createCorePool({ cores: [one] })
    startWorker({ cores: [], pool, sender: network.sender })
    await until('all room', () => first.core.rooms.at(-1)?.limit === 20)
    pool.replace([one, other])
    await until('half of the room', () => [first, second].every(({ core }) => core.rooms.at(-1)?.limit === 10))
    expect(second.core.rooms.at(-1)?.perDestination).toBe(3)
    first.core.add(...deliveries('a', 1))
    second.core.add(...deliveries('b', 1))
    await until('both', () => first.core.recorded.size === 1 && second.core.recorded.size === 1)
    pool.replace([other])
    await until('all room again', () => second.core.rooms.at(-1)?.limit === 20)
    first.core.add(...deliveries('due', 5))
    second.core.add(...deliveries('new', 5))
    await until('the rest', () => second.core.recorded.size === 6)
    expect(first.core.recorded.size).toBe(1)
  })

  it('the delivery worker sends a result over another stream if the stream of its delivery has ended', async () => {
    const [first, second] = [createTestCore(), createTestCore()]
    const network = createTestSender()
    network.hang('a')
    first.core.leaseMs = 1_000
    first.core.add(...deliveries('a', 2))
    startWorker({ cores: [first.transport, second.transport], sender: network.sender })
    await until('two running attempts', () => network.sending('a') === 2)
    first.core.stop()
    await until('renewals over the other stream', () => second.core.renewals.flat().length > 3)
    network.release('a')
    await until('both results', () => second.core.recorded.size === 2)
    expect(first.core.recorded.size).toBe(0)
  })

  it('the delivery worker returns the deliveries of a recalled destination that it has not begun to send', async () => {
    const { core, transport } = createTestCore()
    const network = createTestSender()
    for (const url of ['a', 'b']) network.hang(url)
    core.ignoresRoom = true
    core.add(...deliveries('a', 10), ...deliveries('b', 10))
    startWorker({ cores: [transport], sender: network.sender, perDestination: 3 })
    await until('the first attempts', () => network.sending('a') === 3 && network.sending('b') === 3)
    core.recall('a')
    const released = () => core.records.flat().filter(({ outcome }) => outcome.case === 'released')
    await until('the returned deliveries', () => released().length === 7)
    expect(released().every(({ deliveryId }) => deliveryId.startsWith('dlv_a'))).toBe(true)
    expect([network.sending('a'), network.sending('b')]).toEqual([3, 3])
    for (const url of ['a', 'b']) network.release(url)
    await until('the other results', () => core.recorded.size === 20)
  })

  it('the delivery worker sends and reports each due delivery once', async () => {
    const { core, transport } = createTestCore()
    const network = createTestSender()
    core.add(...deliveries('a', 30), ...deliveries('b', 30))
    const worker = startWorker({ cores: [transport], sender: network.sender })
    await until('all results', () => core.recorded.size === 60)
    core.add(...deliveries('c', 1))
    await until('what became due while it waited', () => core.recorded.size === 61)
    expect(worker.isReady()).toBe(true)
    expect([...core.recorded.values()].every(({ outcome }) => outcome.case === 'response')).toBe(true)
    expect(core.records.flat()).toHaveLength(61)
  })

  it('the delivery worker never has more concurrent requests than allowed, in total and per destination', async () => {
    const { core, transport } = createTestCore()
    const network = createTestSender()
    core.add(...deliveries('a', 100), ...deliveries('b', 100), ...deliveries('c', 7))
    startWorker({ cores: [transport], sender: network.sender, concurrency: 8, perDestination: 3 })
    await until('all results', () => core.recorded.size === 207)
    expect(network.mostAtOnce()).toBeLessThanOrEqual(8)
    for (const url of ['a', 'b', 'c']) expect(network.most(url)).toBeLessThanOrEqual(3)
  })

  it('the delivery worker sends to working destinations while many destinations hang', async () => {
    const { core, transport } = createTestCore()
    const network = createTestSender()
    const hung = Array.from({ length: 8 }, (_, index) => `hung-${index}`)
    for (const url of hung) network.hang(url)
    // The limits of the core do not help here.
    core.ignoresRoom = true
    core.add(...hung.flatMap((url) => deliveries(url, 20)))
    startWorker({ cores: [transport], sender: network.sender, concurrency: 20, perDestination: 5 })
    await until('the hanging ones to be tried', () => hung.every((url) => network.sending(url) > 0))
    for (let round = 0; round < 5; round++) {
      core.add(...deliveries(`good-${round}`, 20))
      await until('the good ones', () => core.recorded.size === 20 * (round + 1))
    }
    expect(hung.every((url) => network.sending(url) > 0)).toBe(true)
    for (const url of hung) network.release(url)
    await until('everything', () => core.recorded.size === 100 + 160)
  })

  itLong('the delivery worker renews the leases of slow deliveries until a core accepts their results', async () => {
    const { core, transport } = createTestCore()
    core.leaseMs = 1_000
    const network = createTestSender()
    network.hang('a')
    core.add(...deliveries('a', 8), ...deliveries('b', 5))
    const noReports = Promise.withResolvers<void>()
    core.onResults = async (results) => {
      if (results.some(({ deliveryId }) => deliveryId.startsWith('dlv_a'))) await noReports.promise
    }
    startWorker({ cores: [transport], sender: network.sender })
    await until('the quick ones', () => core.recorded.size === 5)
    const renewed = () => new Set(core.renewals.flat().map(({ deliveryId }) => deliveryId))
    await until('renewals', () => renewed().size >= 5 && core.renewals.length > 3)
    network.release('a')
    const before = core.renewals.length
    await until('renewals while the core has not answered the report', () => core.renewals.length > before + 3)
    noReports.resolve()
    await until('all results', () => core.recorded.size === 13)
    const after = core.renewals.length
    await new Promise((resolve) => setTimeout(resolve, 600))
    expect(core.renewals.length).toBeLessThanOrEqual(after + 1)
  })

  it('the delivery worker does not send a waiting delivery whose lease was lost', async () => {
    const { core, transport } = createTestCore()
    core.leaseMs = 1_000
    const network = createTestSender()
    network.hang('a')
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
    startWorker({ cores: [transport], sender, perDestination: 1 })
    await until('both renewed', () => core.renewals.some((claims) => claims.length === 2))
    for (const { deliveryId } of core.renewals.flat()) core.lost.add(deliveryId)
    const before = core.renewals.length
    await until('one more look', () => core.renewals.length > before)
    network.release('a')
    await until('both results', () => core.recorded.size === 2)
    expect(sent).toHaveLength(1)
    expect([...core.recorded.values()].map(({ outcome }) => outcome.case).toSorted()).toEqual(['released', 'response'])
  })

  it('the delivery worker sends results that arrive within a few milliseconds in one message', async () => {
    const { core, transport } = createTestCore()
    core.add(...deliveries('b', 5), ...deliveries('c', 5), ...deliveries('d', 5))
    startWorker({ cores: [transport], sender: createTestSender().sender, concurrency: 40, perDestination: 5 })
    await until('all results', () => core.recorded.size === 15)
    expect(core.records.length).toBeLessThan(5)
  })

  it('the delivery worker continues after an outage of the cores and keeps results until they are accepted', async () => {
    const { core, transport } = createTestCore()
    const network = createTestSender()
    network.hang('a')
    core.add(...deliveries('a', 3))
    const worker = startWorker({ cores: [transport], sender: network.sender })
    await until('three running attempts', () => network.sending('a') === 3)
    core.stop()
    network.release('a')
    core.add(...deliveries('b', 2))
    await until('the worker to notice', () => !worker.isReady())
    expect(core.recorded.size).toBe(0)
    core.isDown = false
    core.add(...deliveries('c', 1))
    await until('all results', () => core.recorded.has('att_dlv_a_0') && core.recorded.has('att_dlv_c_0'))
    await until('readiness', () => worker.isReady())
  })

  it('the delivery worker sends a result again if its answer is lost, and the repeat changes nothing', async () => {
    const { core, transport } = createTestCore()
    let lost = 0
    core.onResults = async (results) => {
      if (lost++ > 0) return
      for (const result of results) core.recorded.set(result.attemptId, result)
      throw new ConnectError('cut off', Code.Unavailable)
    }
    core.add(...deliveries('a', 1))
    startWorker({ cores: [transport], sender: createTestSender().sender })
    await until('the repeat', () => core.records.length === 1)
    expect(core.records[0]?.[0]).toMatchObject({ deliveryId: 'dlv_a_0', attemptId: 'att_dlv_a_0', claimId: 'clm_1' })
    expect(core.recorded.size).toBe(1)
  })

  it('the delivery worker finishes running attempts on stop and takes no further deliveries', async () => {
    const { core, transport } = createTestCore()
    const network = createTestSender()
    network.hang('a')
    core.add(...deliveries('a', 2))
    const worker = startWorker({ cores: [transport], sender: network.sender })
    await until('two running attempts', () => network.sending('a') === 2)
    const stopping = worker.stop()
    await until('the end of the room', () => core.rooms.at(-1)?.limit === 0)
    core.add(...deliveries('b', 2))
    network.release('a')
    await stopping
    expect([...core.recorded.values()].map(({ outcome }) => outcome.case)).toEqual(['response', 'response'])
    expect(core.due).toHaveLength(2)
  })

  it('the delivery worker aborts running attempts after the grace time on stop, and returns waiting deliveries to the queue', async () => {
    const { core, transport } = createTestCore()
    const network = createTestSender()
    network.hang('a')
    core.add(...deliveries('a', 3))
    const worker = startWorker({ cores: [transport], sender: network.sender, graceMs: 20 })
    await until('three running attempts', () => network.sending('a') === 3)
    await worker.stop()
    expect([...core.recorded.values()].map(({ outcome }) => outcome.case)).toEqual(['released', 'released', 'released'])
  })
})
