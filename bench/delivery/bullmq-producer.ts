// Producer process of the job queue BullMQ. Arguments: Redis's port, the receiver's port.
import { setTimeout as delay } from 'node:timers/promises'
import { handleCommands } from '../commands.ts'
import { requirePeer } from '../peers.ts'
import { destinations } from './contender.ts'
import { runAtRate, runConcurrently } from './pacing.ts'
import type { ProducerCommand } from './producer.ts'
import { newJob } from './webhook.ts'

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
const bulk = 500

async function create(index: number): Promise<string> {
  const data = newJob(receiverPort, index, destinations)
  await queue.add('webhook', data)
  return data.deliveryId
}

async function fill(count: number): Promise<void> {
  for (let from = 0; from < count; from += bulk) {
    const jobs = Array.from({ length: Math.min(bulk, count - from) }, (_, index) => ({
      name: 'webhook',
      data: newJob(receiverPort, from + index, destinations),
    }))
    await queue.addBulk(jobs)
  }
}

async function settled(): Promise<void> {
  for (;;) {
    const counts = await queue.getJobCounts('active', 'waiting')
    if (Object.values(counts).every((count) => count === 0)) return
    await delay(20)
  }
}

handleCommands(async (command: ProducerCommand) => {
  switch (command.do) {
    // BullMQ does not distinguish destinations, so `fillOne` does the same as `fill`.
    case 'fillOne':
    case 'fill':
      return fill(command.count)
    case 'enqueue':
      return runConcurrently(command.count, command.inFlight, create)
    case 'steady':
      return runAtRate(command.rate, command.seconds, create)
    case 'settled':
      return settled()
  }
})
