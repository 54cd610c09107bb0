import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { testDatabase } from '../../test/support/test-database.ts'
import { type Database, openDatabase } from '../database/database.ts'
import { createIdempotency } from './idempotency.ts'
import { createIdempotencyStore } from './idempotency-store.ts'

const { uri, name } = testDatabase()
let database: Database
beforeAll(async () => {
  database = await openDatabase({ uri, name, timeoutMs: 5000 })
})
afterAll(() => database.close())

const second = 1000
const base = { scope: ['POST /sessions', 'pk'], input: { a: 1 }, keptFor: 600 }

/** The store with calls ordered by the scheduler. */
function scheduled<T extends object>(store: T, scheduler: fc.Scheduler, label: string): T {
  return new Proxy(store, {
    get(target, property) {
      const method = Reflect.get(target, property) as (...call: unknown[]) => Promise<unknown>
      return async (...call: unknown[]) => {
        await scheduler.schedule(Promise.resolve(), `${label} ${String(property)}`)
        return method.apply(target, call)
      }
    },
  })
}

describe('an operation whose slow runs count as dead', () => {
  it('has one result in any order of acquire, takeover, finish and release', async () => {
    const behaviours = fc.array(fc.record({ fails: fc.boolean(), retries: fc.nat({ max: 2 }) }), {
      minLength: 2,
      maxLength: 4,
    })
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), behaviours, async (scheduler, callers) => {
        let now = Date.UTC(2126, 0, 2)
        const key = randomUUID()
        const answers: unknown[] = []
        const run = (index: number, fails: boolean) => async (_: string, startedAt: Date) => {
          await scheduler.schedule(Promise.resolve(), `${index} runs`)
          if (fails) throw new Error('failed')
          return { sessionId: `ses ${startedAt?.getTime()}`, by: index }
        }
        const calls = callers.map(async ({ fails, retries }, index) => {
          const store = scheduled(createIdempotencyStore(database.collections), scheduler, String(index))
          const idempotency = createIdempotency(store, () => now)
          for (let attempt = 0; attempt <= retries; attempt += 1) {
            // Earlier runs count as dead by now.
            await scheduler.schedule(Promise.resolve(), `${index} begins`)
            now += 16 * second
            await idempotency.once({ ...base, key, run: run(index, fails && attempt === 0) }).then(
              ({ result }) => answers.push(result),
              (error) =>
                expect(error.message === 'failed' || error.code === ErrorCode.OPERATION_IN_PROGRESS).toBe(true),
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
        for (const answer of answers) expect(answer).toEqual(last.result)
      }),
      { numRuns: 150 },
    )
  }, 120_000)

  it('keeps the start time of its first run until its result expires', async () => {
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
    expect(await first).toEqual({ result: second_.result, replayed: true })
    expect(started[1]).toEqual(started[0])
    now += 601 * second
    expect((await idempotency.once({ ...base, key, run })).replayed).toBe(false)
    expect(started[2]).not.toEqual(started[0])
  })

  it('stays leased when a slow run fails after a takeover', async () => {
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
    expect((await second_).result).toBe(2)
  })
})
