// Worker or producer process of the job queue Agenda. Arguments: `worker` or `producer`, the
// database engine's URI, the receiver's port.
import { setTimeout as delay } from 'node:timers/promises'
import { requirePeer } from '../../peers.ts'
import { sendWebhook, type WebhookJob } from '../webhook.ts'
import { lockLimit, processEveryMs } from './agenda-settings.ts'
import { concurrency } from './contender.ts'
import { serveQueue } from './queue-process.ts'

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

serveQueue(
  {
    add: (data) => agenda.now('webhook', data),
    isSettled: () => delay(500, true),
  },
  receiverPort,
)
