// The job that the other job queues run: it sends the same signed request as the service, with
// undici.
import { randomUUID } from 'node:crypto'
import { Agent, request } from 'undici'
import { webhookHeaders } from '../../contract/webhook-headers.ts'
import { payloadBytes } from './contenders/contender.ts'

export interface WebhookJob {
  deliveryId: string
  url: string
  body: string
}

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const dispatcher = new Agent({ keepAliveTimeout: 4_000, headersTimeout: 10_000, bodyTimeout: 10_000 })

export function newJob(receiverPort: string, index: number, destinations: number): WebhookJob {
  const deliveryId = `dlv_${randomUUID()}`
  const fields = { email: 'visitor@example.com', message: 'x'.repeat(payloadBytes - 300) }
  const body = JSON.stringify({
    eventType: 'lead.ready-for-delivery',
    id: deliveryId,
    contractVersion: '1.0',
    occurredAt: new Date().toISOString(),
    data: { reference: `lead_${randomUUID()}`, ...fields },
  })
  return { deliveryId, url: `http://127.0.0.1:${receiverPort}/${index % destinations}`, body }
}

export async function sendWebhook({
  deliveryId,
  url,
  body,
}: WebhookJob): Promise<{ status: number; durationMs: number }> {
  const began = performance.now()
  const bytes = Buffer.from(body)
  const { statusCode, body: answer } = await request(url, {
    method: 'POST',
    headers: webhookHeaders({
      deliveryId,
      correlationId: randomUUID(),
      body: bytes,
      secrets: { active: secret, all: [secret] },
      at: Date.now(),
    }),
    body: bytes,
    dispatcher,
  })
  await answer.dump()
  if (statusCode >= 300) throw new Error(`status ${statusCode}`)
  return { status: statusCode, durationMs: Math.round(performance.now() - began) }
}
