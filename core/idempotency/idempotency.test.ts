import { createHash, randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { forAllAsync } from '../../test/support/for-all.ts'
import { runs } from '../../test/support/is-long.ts'
import { testDatabase } from '../../test/support/test-database.ts'
import { openTestDatabase } from '../test/open-test-database.ts'
import { scheduledStore } from '../test/scheduled-database.ts'
import {
  createIdempotency,
  createIdempotencyStore,
  hashInput,
  type IdempotencyRecord,
  type IdempotencyStore,
  type Operation,
} from './idempotency.ts'

const database = await openTestDatabase(testDatabase())

const second = 1000
const base = { scope: ['POST /sessions', 'pk'], input: { a: 1 }, keptFor: 600 }
const hashOf = (text: string) => createHash('sha256').update(text).digest('base64url')
const key = '4b1f6f0e-7f3a-4c55-9d57-0a8f3f4b2c1d'

/**
 * Creates an `Idempotency` over a fake store. The store returns `earlier` if it is given, and
 * leases the key otherwise.
 */
function idempotencyOver(change: Partial<IdempotencyStore> = {}, earlier?: IdempotencyRecord) {
  const store = {
    acquire: vi.fn<IdempotencyStore['acquire']>(async (_, lease) => (earlier ? { earlier } : { acquired: lease })),
    finish: vi.fn<IdempotencyStore['finish']>(async () => undefined),
    release: vi.fn<IdempotencyStore['release']>(async () => {}),
  }
  const now = Date.UTC(2030, 0, 1)
  const { once } = createIdempotency({ ...store, ...change }, () => now)
  const run = vi.fn<Operation<unknown>['run']>(async () => ({ done: true }))
  return { store, run, now, once: (operation: object = {}) => once({ ...base, key, run, ...operation }) }
}

const recordWith = (change: Partial<IdempotencyRecord>): IdempotencyRecord => ({
  inputHash: hashOf('{"a":1}'),
  runningUntil: new Date(0),
  expiresAt: new Date(0),
  ...change,
})

describe('operations', () => {
  it('an operation runs with a lease of 15 s on its scope and key, and its result is stored', async () => {
    const { store, run, now, once } = idempotencyOver()
    expect(await once()).toEqual({ content: { done: true }, replayed: false })
    const id = hashOf(JSON.stringify(['POST /sessions', 'pk', key]))
    const lease = {
      owner: expect.any(Number),
      startedAt: new Date(now),
      inputHash: hashOf('{"a":1}'),
      runningUntil: new Date(now + 15 * second),
      expiresAt: new Date(now + 600 * second),
    }
    expect(store.acquire.mock.calls).toEqual([[id, lease, new Date(now)]])
    expect(run.mock.calls).toEqual([[`${id}.${hashOf('{"a":1}')}`, new Date(now)]])
    expect(store.finish.mock.calls).toEqual([[id, lease, { done: true }, undefined]])
    expect(store.release).not.toHaveBeenCalled()
  })

  it('an operation leases its key under a new token in each run', async () => {
    const { store, once } = idempotencyOver()
    await Promise.all([once(), once()])
    const owners = store.acquire.mock.calls.map(([, { owner }]) => owner)
    expect(new Set(owners).size).toBe(2)
  })

  it('an operation stores the session ids of its request and of its result', async () => {
    const { store, run, once } = idempotencyOver()
    run.mockResolvedValue({ sessionId: 'ses_2' })
    await once({ sessionId: 'ses_1' })
    expect(store.acquire.mock.lastCall![1].sessionIds).toEqual(['ses_1'])
    expect(store.finish.mock.lastCall![3]).toBe('ses_2')
  })

  it.each([[null], ['text'], [{ sessionId: 7 }]])(
    'an operation stores no session id if its result is %j',
    async (result) => {
      const { store, run, once } = idempotencyOver()
      run.mockResolvedValue(result)
      expect(await once()).toEqual({ content: result, replayed: false })
      expect(store.finish.mock.lastCall![3]).toBeUndefined()
    },
  )

  it('an operation that takes over from a dead run gets the start time of that run, and stores its result under the acquired lease', async () => {
    const taken = { owner: 7, startedAt: new Date(1), ...recordWith({}) }
    const { store, run, once } = idempotencyOver({ acquire: async () => ({ acquired: taken }) })
    await once()
    expect(run.mock.lastCall![1]).toEqual(new Date(1))
    expect(store.finish.mock.lastCall![1]).toBe(taken)
  })

  it('an operation is rejected if its idempotency key is invalid', async () => {
    const { store, once } = idempotencyOver()
    await expect(once({ key: 'not a UUID' })).rejects.toMatchObject({ code: 'IdempotencyKeyInvalid' })
    expect(store.acquire).not.toHaveBeenCalled()
  })

  it.each([
    ['returns the stored result of an earlier run', { result: 7 }, { content: 7, replayed: true }],
    ['is rejected while an earlier run of it is not done', {}, { code: 'OperationInProgress', retryAfter: 1 }],
    [
      'is rejected if its key was used with other input',
      { inputHash: 'x', result: 7 },
      { code: 'IdempotencyConflict' },
    ],
  ])('an operation %s', async (_, earlier, expected) => {
    const { run, once } = idempotencyOver({}, recordWith(earlier))
    expect(await once().catch((error) => error)).toMatchObject(expected)
    expect(run).not.toHaveBeenCalled()
  })

  it('an operation returns the stored result if another run took over and finished first', async () => {
    const { once } = idempotencyOver({ finish: async () => recordWith({ result: 'theirs' }) })
    expect(await once()).toEqual({ content: 'theirs', replayed: true })
  })

  it('an operation that fails releases its key and rejects with its own error, even if the release fails too', async () => {
    const release = vi.fn(() => Promise.reject(new Error('no store')))
    const { store, run, once } = idempotencyOver({ release })
    run.mockRejectedValue(new Error('failed'))
    await expect(once()).rejects.toThrow('failed')
    expect(release.mock.calls).toEqual([store.acquire.mock.lastCall!.slice(0, 2)])
    expect(store.finish).not.toHaveBeenCalled()
  })
})

it('the hash of an input depends on the values, not on the order of the fields', () => {
  expect(hashInput({ b: [1], a: 'x' })).toBe(hashOf('{"a":"x","b":[1]}'))
  expect(hashInput(undefined)).toBe(hashOf(''))
})

describe('an operation whose slow run is considered dead', () => {
  it('an operation whose slow run is considered dead has one result in any order of acquire, takeover, finish and release', async () => {
    const behaviours = fc.array(fc.record({ fails: fc.boolean(), retries: fc.nat({ max: 2 }) }), {
      minLength: 2,
      maxLength: 4,
    })
    await forAllAsync([fc.scheduler(), behaviours], runs(300), async (scheduler, callers) => {
      let now = Date.UTC(2126, 0, 2)
      const key = randomUUID()
      const answers: unknown[] = []
      const run = (index: number, fails: boolean) => async (_: string, startedAt: Date) => {
        await scheduler.schedule(Promise.resolve(), `${index} runs`)
        if (fails) throw new Error('failed')
        return { sessionId: `ses ${startedAt?.getTime()}`, by: index }
      }
      const calls = callers.map(async ({ fails, retries }, index) => {
        const store = scheduledStore(scheduler, createIdempotencyStore(database.collections), String(index))
        const idempotency = createIdempotency(store, () => now)
        for (let attempt = 0; attempt <= retries; attempt += 1) {
          // After the time of the lease, all runs that started earlier count as dead.
          await scheduler.schedule(Promise.resolve(), `${index} begins`)
          now += 16 * second
          await idempotency.once({ ...base, key, run: run(index, fails && attempt === 0) }).then(
            ({ content }) => answers.push(content),
            (error) => expect(error.message === 'failed' || error.code === 'OperationInProgress').toBe(true),
          )
        }
      })
      await scheduler.waitFor(Promise.all(calls))
      now += 16 * second
      const last = await createIdempotency(createIdempotencyStore(database.collections), () => now).once({
        ...base,
        key,
        run: async () => ({ sessionId: 'the last', by: -1 }),
      })
      for (const answer of answers) expect(answer).toEqual(last.content)
    })
  })

  it('an operation whose slow run is considered dead keeps the start time of its first run until its result expires', async () => {
    let now = Date.UTC(2126, 0, 2)
    const idempotency = createIdempotency(createIdempotencyStore(database.collections), () => now)
    const key = randomUUID()
    const slow = Promise.withResolvers<void>()
    const started: Date[] = []
    const run = async (_: string, startedAt: Date) => {
      started.push(startedAt)
      if (started.length === 1) await slow.promise
      return { place: started.length }
    }
    const first = idempotency.once({ ...base, key, run })
    await expect.poll(() => started.length).toBe(1)
    now += 16 * second
    const second_ = await idempotency.once({ ...base, key, run })
    slow.resolve()
    expect(await first).toEqual({ content: second_.content, replayed: true })
    expect(started[1]).toEqual(started[0])
    now += 601 * second
    expect((await idempotency.once({ ...base, key, run })).replayed).toBe(false)
    expect(started[2]).not.toEqual(started[0])
  })

  it('an operation whose slow run is considered dead stays leased by the run that took over, even if the slow run then fails', async () => {
    let now = Date.UTC(2126, 0, 2)
    const idempotency = createIdempotency(createIdempotencyStore(database.collections), () => now)
    const key = randomUUID()
    const [slow, takeover] = [Promise.withResolvers<never>(), Promise.withResolvers<number>()]
    let runs = 0
    const running = <R>(promise: Promise<R>) => {
      runs += 1
      return promise
    }
    const first = idempotency
      .once({ ...base, key, run: () => running(slow.promise) })
      .catch((error: Error) => error.message)
    await expect.poll(() => runs).toBe(1)
    now += 16 * second
    const second_ = idempotency.once({ ...base, key, run: () => running(takeover.promise) })
    await expect.poll(() => runs).toBe(2)
    slow.reject(new Error('late'))
    expect(await first).toBe('late')
    await expect(idempotency.once({ ...base, key, run: async () => 3 })).rejects.toThrow('OperationInProgress')
    takeover.resolve(2)
    expect((await second_).content).toBe(2)
  })
})
