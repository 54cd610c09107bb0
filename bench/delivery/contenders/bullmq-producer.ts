// Producer process of the job queue BullMQ. Arguments: Redis's port, the receiver's port.
import { requirePeer } from '../../peers.ts'
import { serveQueue } from './queue-process.ts'

interface BullQueue {
  add(name: string, data: object): Promise<unknown>
  addBulk(jobs: { name: string; data: object }[]): Promise<unknown>
  getJobCounts(...types: string[]): Promise<Record<string, number>>
}
interface BullMQ {
  Queue: new (name: string, options: object) => BullQueue
}

const [port = '', receiverPort = ''] = process.argv.slice(2)
const { Queue } = requirePeer<BullMQ>('bullmq')
const queue = new Queue('webhooks', {
  connection: { host: '127.0.0.1', port: Number(port) },
  defaultJobOptions: { attempts: 9, backoff: { type: 'exponential', delay: 5_000 } },
})

serveQueue(
  {
    add: (data) => queue.add('webhook', data),
    addAll: (jobs) => queue.addBulk(jobs.map((data) => ({ name: 'webhook', data }))),
    async isSettled() {
      const counts = await queue.getJobCounts('active', 'waiting')
      return Object.values(counts).every((count) => count === 0)
    },
  },
  receiverPort,
)
