import { describe, expect, it } from 'vitest'
import { at, newScene } from '../test/claim-queue.ts'
import type { ClaimRequest } from './delivery-claims.ts'
import { bodiesMaxBytes } from './webhook-requests.ts'

const many = (name: string, count: number) => Array.from({ length: count }, (_, index) => `${name}${index}`)

describe('claims', () => {
  it('a claim takes and leases one delivery of each destination in turn until the limit of the claim is reached', async () => {
    const { claim, seen, metrics } = newScene({ due: { a: many('a', 9), b: many('b', 2), c: many('c', 1) } })
    expect(await claim({ limit: 7 })).toEqual(['a0', 'b0', 'c0', 'a1', 'b1', 'a2', 'a3'])
    const time = new Date(at)
    const lease = { workerId: 'w', at: time, knownAt: time, leaseUntil: new Date(at + 5000) }
    expect(seen.taken).toEqual([[['a0', 'b0', 'c0', 'a1', 'b1', 'a2', 'a3'], lease]])
    expect(seen.candidates).toEqual([[['a', 'b', 'c'], at, 5]])
    expect(seen.polls).toMatchObject([{ othersMayFind: true }])
    expect([seen.released, seen.held, seen.dueDestinations]).toEqual([[], [], 0])
    expect((await metrics.claimedDeliveries.get()).values).toMatchObject([{ value: 7 }])
    expect((await metrics.leaseExpiries.get()).values).toMatchObject([{ value: 0 }])
  })

  it('a claim subtracts the deliveries that the worker is already sending from the limit of their destination', async () => {
    const { claim, seen } = newScene({ due: { a: many('a', 9), b: many('b', 9), c: many('c', 9) } })
    const underWay = new Map([
      ['a', 5],
      ['b', 3],
    ])
    expect(await claim({ underWay })).toEqual(['b0', 'c0', 'b1', 'c1', 'c2', 'c3', 'c4'])
    expect(seen.candidates).toEqual([[['b', 'c'], at, 5]])
    const full = newScene({ due: { a: ['a0'] }, later: [500] })
    expect(await full.claim({ underWay })).toEqual([])
    expect(full.seen.polls).toEqual([{ othersMayFind: true, nextDueAt: at + 500 }])
    expect(full.seen.candidates).toEqual([])
  })

  it('a claim takes more deliveries of a destination than its limit if the worker requests some in advance', async () => {
    const { claim, seen } = newScene({ due: { a: many('a', 20), b: many('b', 20) } })
    const taken = await claim({ limit: 30, ahead: new Map([['a', 4]]), underWay: new Map([['b', 3]]) })
    expect(taken.filter((id) => id.startsWith('a'))).toHaveLength(9)
    expect(taken.filter((id) => id.startsWith('b'))).toHaveLength(2)
    expect(seen.candidates).toMatchObject([[['a', 'b'], at, 9]])
  })

  it.each([
    [{ limit: 3, perDestination: 5 }, 2, 3],
    [{ limit: 500, perDestination: 400 }, 4, 250],
    [{ limit: 10, perDestination: 100 }, 10, 10],
    [{ limit: 50, perDestination: 100 }, 50, 5],
  ])(
    'a claim with %j and %i due destinations reads at most %i candidate deliveries of each destination',
    async (more, count, each) => {
      const { claim, seen } = newScene({
        due: Object.fromEntries(many('d', count).map((name) => [name, [`${name}x`]])),
      })
      await claim(more)
      expect(seen.candidates).toMatchObject([[expect.anything(), at, each]])
    },
  )

  it('a claim with a limit of n deliveries reads the due deliveries of at most n destinations, chosen at random', async () => {
    const scene = newScene({ due: { a: ['a0'], b: ['b0'], c: ['c0'] } })
    const chances = [0.9, 0.5, 0.1, 0.2, 0.1, 0.3]
    scene.random = () => chances.shift()!
    expect(await scene.claim({ limit: 2 })).toEqual(['b0', 'c0'])
    expect(scene.seen.candidates).toMatchObject([[['b', 'c'], at, expect.any(Number)]])
  })

  it('a claim holds deliveries of disabled subscriptions, and skips deliveries that cannot be signed', async () => {
    const scene = newScene({ due: { a: ['a0'], b: ['b0'], c: ['c0'] } })
    scene.disabled.add('a')
    scene.unsealed.add('b')
    expect(await scene.claim()).toEqual(['c0'])
    expect(scene.seen.held).toEqual(['a'])
    scene.unsealed.add('c')
    expect(await scene.claim()).toEqual([])
    expect(scene.seen.polls[1]).toEqual({ othersMayFind: true })
    expect(scene.seen.taken).toHaveLength(1)
  })

  it('a claim returns no deliveries after five tries if other cores take every candidate first', async () => {
    const scene = newScene({ due: { a: ['a0'] }, later: [500] })
    scene.takes = () => []
    expect(await scene.claim()).toEqual([])
    expect(scene.seen.taken).toHaveLength(5)
    expect(scene.seen.polls).toEqual([{ othersMayFind: true, nextDueAt: at + 500 }])
  })

  it('a claim returns its deliveries to the queue if it is aborted, and takes none if it was already aborted when it began', async () => {
    const scene = newScene({ due: { a: ['a0', 'a1'] } })
    const abort = new AbortController()
    scene.onTake = () => abort.abort()
    expect(await scene.claim({ signal: abort.signal })).toEqual([])
    expect(scene.seen.released).toEqual([[['a0', 'a1'], at]])
    expect(await scene.claim({ signal: abort.signal })).toEqual([])
    expect(scene.seen.polls[1]).toEqual({ othersMayFind: true })
    expect([scene.seen.taken.length, scene.seen.upcoming]).toEqual([1, 1])
  })

  it('a claim puts deliveries back into the queue if they make the response too large, but returns at least one', async () => {
    const scene = newScene({ due: { a: ['a0', 'a1', 'a2'] } })
    scene.bodyBytes = bodiesMaxBytes / 2
    expect(await scene.claim()).toEqual(['a0', 'a1'])
    expect(scene.seen.released).toEqual([[['a2'], at]])
    scene.bodyBytes = bodiesMaxBytes + 1
    expect(await scene.claim()).toEqual(['a0'])
  })

  it('a claim increases the metric of expired leases by the number of deliveries that it takes over', async () => {
    const scene = newScene({ due: { a: ['a0', 'a1'] } })
    scene.tookOver = true
    await scene.claim()
    expect((await scene.metrics.leaseExpiries.get()).values).toMatchObject([{ value: 2 }])
  })

  it('a claim with `onlyNew` waits as long as requested, and does not read the queue', async () => {
    const { claims, request, seen } = newScene({ due: { a: ['a0'] } })
    const asked = request({ onlyNew: true, waitMs: 70 })
    expect(await claims.claim(asked)).toEqual([])
    expect(seen.waits).toEqual([[at + 70, asked.signal, asked]])
    expect(seen.upcoming).toBe(0)
  })

  it.each<[Partial<ClaimRequest>, string, string]>([
    [{ workerId: '' }, '/workerId', 'minLength'],
    [{ workerId: 'x'.repeat(65) }, '/workerId', 'maxLength'],
    [{ limit: 0 }, '/limit', 'minimum'],
    [{ limit: 1001 }, '/limit', 'maximum'],
    [{ perDestination: 0 }, '/perDestination', 'minimum'],
    [{ perDestination: 1001 }, '/perDestination', 'maximum'],
    [{ ahead: new Map([['a', 1001]]) }, '/ahead/a', 'maximum'],
    [{ waitMs: -1 }, '/waitMs', 'minimum'],
    [{ waitMs: 30_001 }, '/waitMs', 'maximum'],
  ])('a claim is rejected with %j', async (more, path, rule) => {
    await expect(newScene().claim(more)).rejects.toMatchObject({ issues: [{ path, rule }] })
  })
})

describe('claims after an earlier claim of the same core', () => {
  it('a claim that can wait does not read the queue for one second after an earlier claim found nothing due', async () => {
    const scene = newScene({ later: [5000] })
    await scene.claim()
    expect(scene.seen.polls[0]).toEqual({ othersMayFind: false, nextDueAt: at + 5000 })
    scene.time += 999
    await scene.claim()
    expect(scene.seen.polls[1]).toEqual({ othersMayFind: false, nextDueAt: at + 1000 })
    expect(scene.seen.upcoming).toBe(1)
    scene.time += 1
    await scene.claim()
    expect(scene.seen.upcoming).toBe(2)
  })

  it.each<[string, Partial<ReturnType<typeof newScene>>, Partial<ClaimRequest>]>([
    ['it must not wait', {}, { waitMs: 0 }],
    ['work was announced', { announced: 1 }, {}],
    ['the process may have missed wake-ups from other cores', { isCurrent: false }, {}],
    ['the next delivery is due', { time: at + 300 }, {}],
  ])('a claim after an empty claim reads the queue if %s', async (_, change, more) => {
    const scene = newScene({ later: [300] })
    await scene.claim()
    Object.assign(scene, change)
    await scene.claim(more)
    expect(scene.seen.upcoming).toBe(2)
  })

  it('a claim reads the queue if the earlier claim found deliveries, even if other cores took all of them', async () => {
    const scene = newScene({ due: { a: ['a0'] } })
    await scene.claim()
    scene.takes = () => []
    await scene.claim()
    await scene.claim()
    expect(scene.seen.upcoming).toBe(1 + 5 + 5)
  })
})

describe('claims that read the first 256 queue entries', () => {
  it('a claim lists all due destinations if the first 256 queue entries are due; later claims do the same until nothing is due', async () => {
    const due: Record<string, string[]> = { a: many('a', 256), b: ['b0'] }
    const scene = newScene({ due })
    expect((await scene.claim({ limit: 2 })).sort()).toEqual(['a0', 'b0'])
    expect([scene.seen.upcoming, scene.seen.dueDestinations]).toEqual([1, 1])
    expect(scene.seen.polls[0]).not.toHaveProperty('nextDueAt')
    await scene.claim()
    expect([scene.seen.upcoming, scene.seen.dueDestinations]).toEqual([1, 2])
    for (const name of Object.keys(due)) delete due[name]
    expect(await scene.claim()).toEqual([])
    expect([scene.seen.upcoming, scene.seen.dueDestinations]).toEqual([2, 3])
  })

  it('a claim does not list all due destinations if only 255 of the first 256 queue entries are due', async () => {
    const scene = newScene({ due: { a: many('a', 255) }, later: [500] })
    await scene.claim()
    expect(scene.seen.dueDestinations).toBe(0)
  })
})

describe('claims during a backlog of many destinations', () => {
  const destinations = (count: number) => Object.fromEntries(many('d', count).map((name) => [name, [`${name}x`]]))

  it('each destination is chosen once before any is chosen again, and many claims share one list of due destinations', async () => {
    const scene = newScene({ due: destinations(300) })
    const taken: string[] = []
    for (let turn = 0; turn < 6; turn += 1) taken.push(...(await scene.claim({ limit: 50 })))
    expect(new Set(taken).size).toBe(300)
    expect(scene.seen.dueDestinations).toBe(1)
  })

  it('a destination for which one worker has no room is chosen for the next worker that has room', async () => {
    const scene = newScene({ due: destinations(300) })
    const taken = await scene.claim({ limit: 299, underWay: new Map([['d7', 5]]) })
    expect(taken).toHaveLength(299)
    expect(await scene.claim({ limit: 299 })).toEqual(['d7x'])
    expect(scene.seen.dueDestinations).toBe(1)
  })

  it('the list of due destinations is read again after half a second, so that it includes destinations that became due', async () => {
    const scene = newScene({ due: destinations(300) })
    await scene.claim({ limit: 50 })
    scene.time += 499
    await scene.claim({ limit: 50 })
    expect(scene.seen.dueDestinations).toBe(1)
    scene.time += 1
    await scene.claim({ limit: 50 })
    expect(scene.seen.dueDestinations).toBe(2)
  })

  it('the list of due destinations is read again at once if other cores have claimed the deliveries of all its destinations', async () => {
    const due = destinations(300)
    const scene = newScene({ due })
    await scene.claim({ limit: 50 })
    for (const name of Object.keys(due)) due[name] = []
    Object.assign(due, { other: many('o', 3) })
    expect((await scene.claim({ limit: 302 })).sort()).toEqual(many('o', 3))
    expect(scene.seen.dueDestinations).toBe(2)
  })
})

it('a core runs its claims one after another, even if one fails', async () => {
  const scene = newScene({ due: { a: ['a0'] } })
  let running = 0
  scene.onTake = () => {
    running += 1
    if (running === 1) throw new Error('gone')
  }
  const [first, second] = await Promise.allSettled([scene.claim(), scene.claim()])
  expect([first.status, second.status, running]).toEqual(['rejected', 'fulfilled', 2])
})

describe('renewals', () => {
  it('a renewal moves the end of the leases, and returns true only for claims that the worker still holds', async () => {
    const { renew, seen, metrics } = newScene()
    const claims = [
      { deliveryId: 'a', claimId: 'clm_1' },
      { deliveryId: 'b', claimId: 'lost' },
      { deliveryId: 'c', claimId: 'clm_2' },
    ]
    expect(await renew(claims)).toEqual([true, false, false])
    expect(seen.renewed).toEqual([{ leaseUntil: new Date(at + 5000), takenSince: new Date(at - 30_000) }])
    const { values } = await metrics.claimRenewals.get()
    expect(values.map(({ labels, value }) => [labels.result, value])).toEqual([
      ['held', 1],
      ['lost', 2],
    ])
  })

  it('a renewal accepts a thousand claims in one call and rejects more', async () => {
    const { renew } = newScene()
    const claims = many('dlv', 1001).map((deliveryId) => ({ deliveryId, claimId: 'clm_1' }))
    expect(await renew(claims.slice(1))).toHaveLength(1000)
    await expect(renew(claims)).rejects.toMatchObject({ issues: [{ path: '/claims', rule: 'maxItems' }] })
  })
})
