import type { Scheduler } from 'fast-check'
import { until } from '../../test/support/until.ts'
import type { Collections } from '../database/collections.ts'
import type { Database } from '../database/database.ts'

const writes = new Set([
  'insertOne',
  'insertMany',
  'updateOne',
  'updateMany',
  'findOneAndUpdate',
  'replaceOne',
  'deleteOne',
  'deleteMany',
  'bulkWrite',
])
const reads = new Set(['findOne', 'countDocuments', 'distinct', 'toArray'])

interface DatabaseCall {
  collection: string
  method: string
  run(): Promise<unknown>
}

/**
 * Wraps a database so that `intercept` runs each read and write of its collections, including the reads of cursors.
 */
function intercepted(database: Database, intercept: (call: DatabaseCall) => Promise<unknown>): Database {
  const wrap = <T extends object>(part: T, collection: string): T =>
    new Proxy(part, {
      get(target, property) {
        const value = Reflect.get(target, property)
        if (typeof value !== 'function') return value
        const method = String(property)
        return (...call: unknown[]) => {
          const run = () => value.apply(target, call)
          if (writes.has(method) || reads.has(method)) return intercept({ collection, method, run })
          const made = run()
          return made !== null && typeof made === 'object' ? wrap(made, collection) : made
        }
      },
    })
  const collections = Object.entries(database.collections).map(([name, collection]) => [name, wrap(collection, name)])
  return { ...database, collections: Object.fromEntries(collections) as Collections, close: async () => {} }
}

/**
 * Wraps a database so that it accepts this number of writes and then rejects all writes. Wake-ups
 * are not counted. The last use of a token can always be noted.
 */
export function mortalDatabase(database: Database, acceptedWrites: number): Database {
  let left = acceptedWrites
  const dead = () => Promise.reject(new Error('dead'))
  return {
    ...intercepted(database, ({ collection, method, run }) => {
      if (!writes.has(method) || collection === 'tokens') return run()
      if (left <= 0) return dead()
      if (collection !== 'wakeups') left -= 1
      return run()
    }),
    screenshots: new Proxy(database.screenshots, {
      get(target, property) {
        const value = Reflect.get(target, property)
        if (property !== 'delete') return typeof value === 'function' ? value.bind(target) : value
        return (...call: unknown[]) => {
          if (left <= 0) return dead()
          left -= 1
          return value.apply(target, call)
        }
      },
    }),
  }
}

/**
 * Wraps a database so that `before` runs before each call, with the number of the call. Calls for
 * wake-ups do not count.
 */
export function databaseWithHook(database: Database, before: (call: number) => Promise<unknown> | undefined): Database {
  let calls = 0
  return intercepted(database, async ({ collection, run }) => {
    if (collection === 'wakeups') return run()
    calls += 1
    await before(calls)
    return run()
  })
}

/** Runs the task when the scheduler chooses it. Other scheduled tasks wait until it is done. */
export async function inTurn<T>(scheduler: Scheduler, name: string, task: () => Promise<T>): Promise<T> {
  let value: T | undefined
  // When the scheduler chooses the task, the scheduler awaits this thenable. The await starts the task.
  const onTurn = (done: () => void, fail: (error: unknown) => void) =>
    task().then((result) => {
      value = result
      done()
    }, fail)
  // biome-ignore lint/suspicious/noThenProperty: the task must not begin before it is awaited
  await scheduler.schedule({ then: onTurn } as unknown as Promise<void>, name)
  return value as T
}

/**
 * Runs a call in one turn of the scheduler and returns its result in another turn. Other tasks can
 * therefore run between a query and the code after the query.
 */
async function inTurns<T>(scheduler: Scheduler, name: string, call: () => Promise<T>): Promise<T> {
  const answer = await inTurn(scheduler, name, call)
  await scheduler.schedule(Promise.resolve(), `${name} answered`)
  return answer
}

interface ScheduleOptions {
  /** Name of the core in the order that a failed test prints. */
  name?: string
  /** Runs before each call, with the number of the call. The call starts when the returned promise resolves. */
  beforeCall?: (call: number) => Promise<unknown> | undefined
  /** Name of a collection. Its calls do not wait for the scheduler. */
  atOnce?: keyof Collections
}

/** Wraps a database. The scheduler chooses the order of its calls and results. */
export function scheduledDatabase(
  scheduler: Scheduler,
  database: Database,
  { name = '', beforeCall, atOnce }: ScheduleOptions = {},
): Database {
  let calls = 0
  return intercepted(database, async ({ collection, method, run }) => {
    if (collection === atOnce) return run()
    calls += 1
    await beforeCall?.(calls)
    return inTurns(scheduler, `${name} ${collection}.${method}`, run)
  })
}

/** Wraps a store. The scheduler chooses the order of its calls and results. */
export function scheduledStore<Store extends object>(scheduler: Scheduler, store: Store, name = ''): Store {
  return new Proxy(store, {
    get(target, property) {
      const method = Reflect.get(target, property)
      if (typeof method !== 'function') return method
      return (...call: unknown[]) => inTurns(scheduler, `${name} ${String(property)}`, () => method.apply(target, call))
    },
  })
}

/** Runs all scheduled calls, in the order of the scheduler, until the promise resolves. */
export async function runScheduled<T>(scheduler: Scheduler, promise: Promise<T>): Promise<T> {
  let isOver = false
  const over = promise.finally(() => {
    isOver = true
  })
  over.catch(() => {})
  await until('the end of all calls', async () => {
    while (scheduler.count() > 0 && !isOver) await scheduler.waitOne()
    return isOver
  })
  return over
}
