// Worker or producer process of the job queue Agenda. Arguments: `worker` or `producer`, the
// database engine's URI, the receiver's port.
import { setTimeout as delay } from 'node:timers/promises'
import { handleCommands } from '../commands.ts'
import { requirePeer } from '../peers.ts'
import { lockLimit, processEveryMs } from './agenda-settings.ts'
import { concurrency, destinations } from './contender.ts'
import { runAtRate, runConcurrently } from './pacing.ts'
import type { ProducerCommand } from './producer.ts'
import { newJob, sendWebhook, type WebhookJob } from './webhook.ts'

interface AgendaInstance {
  ready: Promise<unknown>
  define(name: string, run: (job: { attrs: { data: WebhookJob } }) => Promise<unknown>, options: object): void
  now(name: string, data: object): Promise<unknown>
  start(): Promise<unknown>
  getRunningStats?(): Promise<unknown>
  on(event: 'error', listener: () => void): unknown
}
interface AgendaModule {
  Agenda: new (options: object) => AgendaInstance
}
interface MongoBackendModule {
  MongoBackend: new (options: object) => object
}

const [role = '', address = '', receiverPort = ''] = process.argv.slice(2)
const { Agenda } = requirePeer<AgendaModule>('agenda')
const { MongoBackend } = requirePeer<MongoBackendModule>('@agendajs/mongo-backend')
/** Database options of Agenda. Its writes have the same durability as the service's writes. */
const options = { writeConcern: { w: 'majority', journal: true } }
const agenda = new Agenda({
  backend: new MongoBackend({ address, options }),
  processEvery: processEveryMs,
  maxConcurrency: concurrency,
  defaultConcurrency: concurrency,
})
agenda.on('error', () => {})
await agenda.ready

if (role === 'worker') {
  // Without a lock limit, Agenda locks its whole backlog, one job per call, before it runs the
  // first job.
  agenda.define('webhook', ({ attrs }) => sendWebhook(attrs.data), { concurrency, lockLimit })
  await agenda.start()
}

async function create(index: number): Promise<string> {
  const data = newJob(receiverPort, index, destinations)
  await agenda.now('webhook', data)
  return data.deliveryId
}

handleCommands(async (command: ProducerCommand) => {
  switch (command.do) {
    case 'fillOne':
    case 'fill':
      return runConcurrently(command.count, concurrency, create)
    case 'enqueue':
      return runConcurrently(command.count, command.inFlight, create)
    case 'steady':
      return runAtRate(command.rate, command.seconds, create)
    case 'settled':
      return delay(500)
  }
})
