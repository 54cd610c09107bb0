import type { Scheduler } from 'fast-check'
import type { Collections, Database } from './database/database.ts'

/** Calls that go to the database, of collections and of cursors. */
const asking = new Set([
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

/** Makes a task of the scheduler that begins only when its turn comes, and that no other one interrupts. */
export async function inTurn<T>(scheduler: Scheduler, name: string, task: () => Promise<T>): Promise<T> {
  let value: T | undefined
  // The scheduler awaits what it is given when the turn comes, and prints what it gets.
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
 * The database as one process sees it when each of its calls waits for its turn, and each answer for another one: other tasks can
 * come between a question and the line of code after it.
 */
export function interleavedDatabase(scheduler: Scheduler, database: Database): Database {
  async function askInTurn<T>(name: string, ask: () => Promise<T>): Promise<T> {
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
          if (asking.has(String(property))) return askInTurn(name, () => value.apply(target, call))
          const made = value.apply(target, call)
          // Cursors, which ask when they are read.
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
