import { setTimeout as delay } from 'node:timers/promises'
import { type Db, type Document, MongoClient } from 'mongodb'
import { until } from '../../test/support/until.ts'
import { amount, compare, type Figures, type Part, type Step, tablesOf } from '../measure.ts'
import type { Access } from '../service.ts'
import { type Delivering, ours } from './contenders.ts'
import { drainColumns } from './part.ts'
import { drain, stopWorker } from './steps.ts'

const day = 86_400_000
interface Queued extends Delivering {
  backlog: Backlog
  few: string[]
}

/** Measures many destinations, and many finished deliveries. */
export const part: Part = async (options) => {
  const { quick, full } = options
  const sizes = {
    drained: quick ? 1_000 : 5_000,
    destinations: quick ? 1_000 : 10_000,
    finished: full ? 10_000_000 : quick ? 50_000 : 1_000_000,
  }
  const contender = {
    ...ours,
    async start(given: object): Promise<Queued> {
      const delivering = await ours.start(given)
      await stopWorker(delivering)
      await delivering.work({ do: 'fill', count: 50 })
      const backlog = await openBacklog(delivering.service!.access)
      delivering.worker()!.kill('SIGCONT')
      const few = (await backlog.addDestinations(0)).slice(0, 50)
      return { ...delivering, backlog, few }
    },
  }
  const drainTo = async (queued: Queued, destinations: string[]) => {
    await delay(500)
    return drain(queued, sizes.drained, (count) => queued.backlog.write(count, destinations, {}))
  }
  const drained = (
    name: string,
    title: string,
    run: (queued: Queued) => Promise<Map<string, Figures>>,
  ): Step<Queued> => ({
    ...{ name, title: `${title}, ${amount(sizes.drained)} deliveries`, columns: drainColumns, run },
    row: (_, variant) => variant,
  })
  const steps: Step<Queued>[] = [
    drained('finished', 'Drain beside finished deliveries', async (queued) => {
      const before = await drainTo(queued, queued.few)
      const ended = { status: 'accepted', dueAt: undefined, body: undefined, deleteAt: new Date(Date.now() + day) }
      await queued.backlog.write(sizes.finished, queued.few, ended)
      return new Map([
        ['none', before],
        [amount(sizes.finished), await drainTo(queued, queued.few)],
      ])
    }),
    drained('destinations', 'Drain of few and many destinations', async (queued) => {
      const many = (await queued.backlog.addDestinations(sizes.destinations)).slice(-sizes.destinations)
      return new Map([
        [String(queued.few.length), await drainTo(queued, queued.few)],
        [`${amount(many.length)} new`, await drainTo(queued, many)],
        [`${amount(many.length)} that have answered`, await drainTo(queued, many)],
      ])
    }),
  ]
  const warmUp = (queued: Queued) => drainTo(queued, queued.few)
  return tablesOf(await compare({ contenders: [contender], steps, options, warmUp, starts: 'step' }))
}

export type Backlog = Awaited<ReturnType<typeof openBacklog>>

const step = 2_000

/** Writes copies of a waiting delivery directly to the database. */
export async function openBacklog({ mongodbUri, database }: Access) {
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
    /** Adds copies of a subscription. Returns the ids of all enabled ones. */
    async addDestinations(count: number) {
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

    /** Writes deliveries to the destinations. `changed` replaces fields of each. */
    write: (count: number, destinations: string[], changed: Document) =>
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
  }
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => from + index)
