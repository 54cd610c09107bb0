import { type Db, type Document, MongoClient } from 'mongodb'
import { until } from '../../test/support/until.ts'
import type { Access } from '../service.ts'

/** Writes subscriptions and deliveries directly to the database of the service. */
export interface Backlog {
  /** Adds copies of a subscription. Returns the ids of all enabled subscriptions. */
  addDestinations(count: number): Promise<string[]>
  /** Writes deliveries, spread over the destinations. `changed` replaces fields of each delivery. */
  write(count: number, destinations: string[], changed: Document): Promise<void>
  countPaused(): Promise<number>
}

const step = 2_000

/**
 * Waits until the database has a waiting delivery. The backlog consists of copies of this
 * delivery, each with its own ids.
 */
export async function openBacklog({ mongodbUri, database }: Access): Promise<Backlog> {
  const client = await new MongoClient(mongodbUri, { ignoreUndefined: true }).connect()
  const db: Db = client.db(database)
  const deliveries = db.collection<Document & { _id: string }>('deliveries')
  const subscriptions = db.collection<Document & { _id: string }>('leadSubscriptions')
  const found = await until('a waiting delivery', () => deliveries.findOne({ status: 'pending' }))
  const subscription = await subscriptions.findOne({ _id: found.subscriptionId })
  let written = 0
  let added = 0

  async function inSteps(count: number, insert: (from: number, to: number) => Promise<unknown>) {
    for (let from = 0; from < count; from += step) await insert(from, Math.min(from + step, count))
  }

  return {
    async addDestinations(count) {
      await inSteps(count, (from, to) =>
        subscriptions.insertMany(
          range(from, to).map(() => {
            added += 1
            return { ...subscription, _id: `sub_bench${added}`, place: `leads bench${added}`, automatic: false }
          }),
        ),
      )
      const all = await subscriptions.find({ status: 'enabled' }, { projection: { _id: 1 } }).toArray()
      return all.map(({ _id }) => _id)
    },

    write: (count, destinations, changed) =>
      inSteps(count, (from, to) => {
        const now = new Date()
        const documents = range(from, to).map((index) => {
          const id = `bench${written++}`
          const destination = destinations[index % destinations.length] as string
          const attempt = { ...found.attempts[0], attemptId: `att_${id}`, createdAt: now, updatedAt: now }
          return {
            ...found,
            ...{ _id: `dlv_${id}`, subscriptionId: destination, destination },
            ...{ createdAt: now, updatedAt: now, dueAt: now, attempts: [attempt] },
            operations: [{ key: id, inputHash: '', attemptId: attempt.attemptId }],
            ...changed,
          }
        })
        return deliveries.insertMany(documents, { ordered: false })
      }),

    countPaused: () => deliveries.countDocuments({ destination: { $gt: '' }, status: 'held' }),
  }
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => from + index)
