// Worker process of the job queue BullMQ. Arguments: Redis's port, and `log` to record each
// attempt.
import { Redis } from 'ioredis'
import { handleCommands } from '../../commands.ts'
import { requirePeer } from '../../peers.ts'
import { sendWebhook, type WebhookJob } from '../webhook.ts'
import { concurrency } from './contender.ts'

interface BullJob {
  data: WebhookJob
  attemptsMade: number
}
interface BullMQ {
  Worker: new (
    name: string,
    run: (job: BullJob) => Promise<unknown>,
    options: object,
  ) => { waitUntilReady(): Promise<unknown>; on(event: 'error', listener: () => void): unknown }
}

const [port = '', log] = process.argv.slice(2)
const { Worker } = requirePeer<BullMQ>('bullmq')
const redis = new Redis({ port: Number(port), maxRetriesPerRequest: null })

const worker = new Worker(
  'webhooks',
  async ({ data, attemptsMade }) => {
    const { status, durationMs } = await sendWebhook(data)
    if (log === 'log') {
      const at = new Date().toISOString()
      await redis.hset(`attempt:${data.deliveryId}:${attemptsMade + 1}`, { status, durationMs, at })
    }
    return status
  },
  { connection: { host: '127.0.0.1', port: Number(port) }, concurrency },
)
worker.on('error', () => {})
await worker.waitUntilReady()
handleCommands(async () => true)
