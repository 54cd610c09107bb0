// Producer of the service. `fill` captures leads, each of which has one delivery per destination. Arguments:
// the file with the access, and the receiver's port.
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createClient } from '@connectrpc/connect'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { connectService } from '../../core-client/index.ts'
import { type Access, followDeferred } from '../service.ts'
import { concurrency, destinations, payloadBytes, runConcurrently, serveProducer } from './pacing.ts'

const [file = '', receiverPort = ''] = process.argv.slice(2)
const access: Access = JSON.parse(await readFile(file, 'utf8'))
const { coreUrl, serviceToken, workspaceId } = access
const { transport } = await connectService({ urls: [coreUrl], token: serviceToken })
const leads = createClient(LeadService, transport)
const deferred = await followDeferred(access)
const fields = { email: 'visitor@example.com', message: 'x'.repeat(payloadBytes - 300) }
const lead = () => leads.captureLead({ workspaceId, source: 'bench', fields })
/** This lead is captured before the subscriptions exist, so that it is not sent automatically. */
const { leadId } = await lead()
const subscriptions = await Promise.all(
  Array.from({ length: destinations }, (_, index) =>
    leads.createSubscription({
      ...{ workspaceId, destinationUrl: `http://127.0.0.1:${receiverPort}/${index}` },
      ...{ mappedFields: Object.keys(fields), automatic: true },
    }),
  ),
)

async function create(index: number): Promise<string> {
  const { subscriptionId = '' } = subscriptions[index % destinations] ?? {}
  const { attempt } = await leads.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey: randomUUID() })
  return attempt?.deliveryId ?? ''
}

serveProducer({
  create,
  fill: (count) => runConcurrently(Math.ceil(count / destinations), 4, lead),
  fillOne: (count) => runConcurrently(count, concurrency, () => create(0)),
  isSettled: deferred.areDelivered,
})
