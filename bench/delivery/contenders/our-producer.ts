// Producer process of the service. `fill` captures leads. Every destination has an automatic
// subscription, so each lead causes one delivery per destination. `enqueue` and `steady` create
// single deliveries with CreateDeliveryAttempt.
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { createClient } from '@connectrpc/connect'
import { DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { connectService } from '../../../core-client/index.ts'
import { runConcurrently } from '../pacing.ts'
import { concurrency, destinations, payloadBytes } from './contender.ts'
import { serveProducer } from './producer-process.ts'

const [coreUrl = '', demoFile = '', receiverPort = ''] = process.argv.slice(2)
const { serviceToken, workspaceId } = JSON.parse(await readFile(demoFile, 'utf8'))
const { transport } = await connectService({ urls: [coreUrl], token: serviceToken })
const leads = createClient(LeadService, transport)
const fields = { email: 'visitor@example.com', message: 'x'.repeat(payloadBytes - 300) }
const lead = () => leads.captureLead({ workspaceId, source: 'bench', fields })
/** This lead is captured before the subscriptions exist, so that it is not sent automatically. */
const { leadId } = await lead()
const subscriptions = await Promise.all(
  Array.from({ length: destinations }, (_, index) =>
    leads.createSubscription({
      workspaceId,
      destinationUrl: `http://127.0.0.1:${receiverPort}/${index}`,
      mappedFields: Object.keys(fields),
      automatic: true,
    }),
  ),
)

async function create(index: number): Promise<string> {
  const { subscriptionId = '' } = subscriptions[index % destinations] ?? {}
  const { attempt } = await leads.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey: randomUUID() })
  return attempt?.deliveryId ?? ''
}

async function settled(): Promise<void> {
  const statuses = [DeliveryStatus.PENDING, DeliveryStatus.SENDING]
  while ((await leads.listDeliveries({ workspaceId, statuses, limit: 1 })).deliveries.length > 0) await delay(20)
}

serveProducer({
  create,
  fill: (count) => runConcurrently(Math.ceil(count / destinations), 4, lead),
  fillOne: (count) => runConcurrently(count, concurrency, () => create(0)),
  settled,
})
