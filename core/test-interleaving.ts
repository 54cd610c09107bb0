import type { Scheduler } from 'fast-check'
import type { Collections, Database } from './database/database.ts'

/** Methods of collections and cursors that call the database. */
const databaseMethods = new Set([
  'insertOne',
  'insertMany',
  'updateOne',
  'updateMany',
  'findOne',
  'findOneAndUpdate',
  'replaceOne',
  'deleteOne',
  'deleteMany',
  'bulkWrite',
  'countDocuments',
  'distinct',
  'toArray',
])

/** Runs a task in its turn of the scheduler, without interruption by other tasks. */
export async function inTurn<T>(scheduler: Scheduler, name: string, task: () => Promise<T>): Promise<T> {
  let value: T | undefined
  // The scheduler awaits this object in its turn, and prints the result.
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
 * Wraps a database so that each call waits for its turn, and each result for another one. So other
 * tasks can run between a query and the code after it.
 */
export function interleavedDatabase(scheduler: Scheduler, database: Database): Database {
  async function callInTurn<T>(name: string, ask: () => Promise<T>): Promise<T> {
    const answer = await inTurn(scheduler, name, ask)
    await scheduler.schedule(Promise.resolve(), `${name} answered`)
    return answer
  }

  const inTurns = <T extends object>(part: T, of: string): T =>
    new Proxy(part, {
      get(target, property) {
        const value = Reflect.get(target, property)
        if (typeof value !== 'function') return value
        const name = `${of}.${String(property)}`
        return (...call: unknown[]) => {
          if (databaseMethods.has(String(property))) return callInTurn(name, () => value.apply(target, call))
          const made = value.apply(target, call)
          // Cursors call the database when they are read.
          return made !== null && typeof made === 'object' ? inTurns(made, name) : made
        }
      },
    })
  const collections = Object.entries(database.collections).map(([name, collection]) => [
    name,
    inTurns(collection, name),
  ])
  return { ...database, collections: Object.fromEntries(collections) as Collections, close: async () => {} }
}
