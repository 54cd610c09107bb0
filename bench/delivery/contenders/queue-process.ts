import { setTimeout as delay } from 'node:timers/promises'
import { runConcurrently } from '../pacing.ts'
import { newJob, type WebhookJob } from '../webhook.ts'
import { concurrency, destinations } from './contender.ts'
import { serveProducer } from './producer-process.ts'

/** How a compared job queue takes jobs. */
export interface JobQueue {
  add(job: WebhookJob): Promise<unknown>
  /** Adds many jobs at once. Default: one by one, some at a time. */
  addAll?(jobs: WebhookJob[]): Promise<unknown>
  /** Whether the results of all attempts are stored. */
  isSettled(): Promise<boolean>
}

const bulk = 500
const settledEveryMs = 20

/** Runs in the process of a job queue, and does what the bench tells it to do. */
export function serveQueue({ add, addAll, isSettled }: JobQueue, receiverPort: string): void {
  const jobOf = (index: number) => newJob(receiverPort, index, destinations)

  async function create(index: number): Promise<string> {
    const job = jobOf(index)
    await add(job)
    return job.deliveryId
  }

  async function fill(count: number): Promise<unknown> {
    if (!addAll) return runConcurrently(count, concurrency, create)
    for (let from = 0; from < count; from += bulk)
      await addAll(Array.from({ length: Math.min(bulk, count - from) }, (_, index) => jobOf(from + index)))
    return undefined
  }

  async function settled(): Promise<void> {
    while (!(await isSettled())) await delay(settledEveryMs)
  }

  // These queues do not distinguish destinations, so `fillOne` does the same as `fill`.
  serveProducer({ create, fill, fillOne: fill, settled })
}
