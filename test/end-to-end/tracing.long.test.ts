import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Collector, clientKind, newTraceparent, startCollector } from '../support/collector.ts'
import { startDeliveryWorker } from '../support/delivery-worker.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import type { Visitor } from '../support/visitor.ts'

const database = testDatabase()
const messages = 'POST /api/integrations/v1/widget/messages'

let collector: Collector
let receiver: Receiver
let stack: Stack
let trusting: { url: string }
let visitor: Visitor

let env: Record<string, string>

beforeAll(async () => {
  collector = await startCollector()
  receiver = await startReceiver()
  env = { ...collector.env, DELIVERY_ALLOWED_CIDRS: '127.0.0.1/32', TRUST_PROXY: '1' }
  stack = await startStack({ database, env })
  trusting = stack.gateways[0]!
  visitor = await stack.newVisitor({ gatewayUrl: trusting.url })
})
afterAll(() => Promise.all([collector.close(), receiver.close()]))

function send(body: string, traceparent: string, via = trusting.url) {
  const clientOperationId = randomUUID()
  return visitor.call('POST', '/messages', {
    body: { clientOperationId, body, contentType: 'text' },
    headers: { 'Idempotency-Key': clientOperationId, traceparent },
    via,
  })
}

it('a batch of sends continues the trace of one send and links to the others', async () => {
  const core = stack.cores[0]!.process()
  core.kill('SIGSTOP')
  const traceparents = Array.from({ length: 5 }, newTraceparent)
  const sends = traceparents.map((traceparent, index) => send(`together ${index}`, traceparent))
  await new Promise((resolve) => setTimeout(resolve, 300))
  core.kill('SIGCONT')
  for (const { status } of await Promise.all(sends)) expect(status).toBe(202)

  const traceIds = traceparents.map((traceparent) => traceparent.split('-')[1])
  const batch = await collector.span(
    'send batch',
    ({ traceId, links = [] }) => links.length > 0 && traceIds.includes(traceId),
  )
  expect(batch.attributes['service.batch.size']).toBe(batch.links!.length + 1)
  for (const { traceId, spanId } of batch.links!) {
    const request = await collector.span(messages, (span) => span.spanId === spanId)
    expect(request.traceId).toBe(traceId)
    expect(traceIds).toContain(traceId)
  }
})

async function requestDelivery(query: string) {
  const { leads } = stack.operator()
  const { workspaceId, workspaceSession } = stack.demo
  const destinationUrl = `${receiver.http}/200?${query}`
  const { subscriptionId } = await leads.createSubscription({ workspaceId, destinationUrl, mappedFields: ['email'] })
  const { leadId } = await leads.captureLead({ workspaceId, source: 'test', fields: { email: 'zoe@example.com' } })
  const traceparent = newTraceparent()
  const { status } = await fetch(`${trusting.url}/api/leads/${leadId}/delivery-attempts`, {
    method: 'POST',
    headers: { authorization: `Bearer ${workspaceSession}`, 'content-type': 'application/json', traceparent },
    body: JSON.stringify({ subscriptionId, idempotencyKey: randomUUID() }),
  })
  expect(status).toBe(201)
  return {
    received: () => until('the delivery', () => receiver.to(`/200?${query}`)[0]),
    span: (name: string) => collector.span(name, (span) => span.traceId === traceparent.split('-')[1]),
  }
}

it('if a delivery waits in the queue, its attempt belongs to the trace of the request that created it', async () => {
  const { span } = await requestDelivery('queued')
  expect(collector.spans.filter(({ name }) => name === 'attempt')).toEqual([])
  await startDeliveryWorker(stack, env)
  await span('attempt')
  const taken = await collector.span('take deliveries', ({ kind }) => kind === clientKind)
  expect(taken.service).toBe('service-core')
})

it('a delivery is one trace from the operator’s request to the attempt, and the destination gets no traceparent', async () => {
  const { received, span } = await requestDelivery('traced')
  const { headers } = await received()
  expect(headers).not.toHaveProperty('traceparent')

  const attempt = await span('attempt')
  expect(attempt).toMatchObject({
    service: 'service-delivery',
    kind: clientKind,
    attributes: {
      'service.attempt.outcome': 'response',
      'http.response.status_code': 200,
      'service.correlation_id': headers['x-correlation-id'],
    },
  })
  expect(await span('insert deliveries')).toMatchObject({ service: 'service-core', kind: clientKind })
})

it('a gateway that trusts no proxy ignores the caller’s traceparent', async () => {
  const open = await stack.addGateway(collector.env)
  const before = collector.spans.length
  const traceparent = newTraceparent()
  expect((await send('Believe me', traceparent, open.url)).status).toBe(202)
  const request = await until('its span', () => collector.spans.slice(before).find(({ name }) => name === messages))
  expect(request.traceId).not.toBe(traceparent.split('-')[1])
  expect(request.parentSpanId ?? '').toBe('')
})

it('no span contains a body, a visitor’s id, a credential or a destination', () => {
  const { sessionId, conversationId, accessGrant } = visitor.session
  const all = JSON.stringify(collector.spans)
  for (const text of ['together', 'zoe@', sessionId, conversationId, accessGrant, receiver.http, 'whsec_']) {
    expect(all).not.toContain(text)
  }
})

it('a gateway without a tracing endpoint creates no spans and does not forward traceparent', async () => {
  const plain = await stack.addGateway({ TRUST_PROXY: '1' })
  const traceparent = newTraceparent()
  expect((await send('Off', traceparent, plain.url)).status).toBe(202)
  // Tracing is on in the core, so the core would report a span if the gateway forwarded traceparent.
  await send('On', newTraceparent())
  await new Promise((resolve) => setTimeout(resolve, 500))
  expect(collector.spans.filter(({ traceId }) => traceId === traceparent.split('-')[1])).toEqual([])
})
