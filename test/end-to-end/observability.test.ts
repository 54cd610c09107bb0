import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  type Collector,
  childOf,
  clientKind,
  newTraceparent,
  serverKind,
  startCollector,
} from '../support/collector.ts'
import { scrape, sumOf } from '../support/metrics.ts'
import type { StartedProcess } from '../support/processes.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import type { Visitor } from '../support/visitor.ts'

const database = testDatabase()
let collector: Collector
let stack: Stack
let visitor: Visitor

beforeAll(async () => {
  collector = await startCollector()
  stack = await startStack({ database, env: { ...collector.env, LOG_LEVEL: 'debug', TRUST_PROXY: '1' } })
  visitor = await stack.newVisitor()
})
afterAll(() => collector.close())

interface Line {
  level: number
  time: string
  part: string
  msg: string
  correlationId?: string
}

const linesOf = (running: StartedProcess): Line[] =>
  running
    .output()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))

const findLine = (running: StartedProcess, correlationId: string, text: string) =>
  until(`a line of ${correlationId} with ${text}`, () =>
    linesOf(running).find((line) => line.correlationId === correlationId && JSON.stringify(line).includes(text)),
  )

it('the correlation id of a request is in the logs of gateway and core', async () => {
  const correlationId = `test-${randomUUID()}`
  const { headers } = await visitor.call('GET', '/messages', { headers: { 'X-Correlation-Id': correlationId } })
  expect(headers.get('x-correlation-id')).toBe(correlationId)
  expect(await findLine(stack.gateways[0]!.process(), correlationId, '"request"')).toMatchObject({
    route: '/api/integrations/v1/widget/messages',
    status: 200,
  })
  expect(await findLine(stack.cores[0]!.process(), correlationId, 'ListVisitorMessages')).toMatchObject({
    msg: 'call',
    code: 'ok',
  })
})

it('an invalid correlation id is not logged by the core', async () => {
  const { leads } = stack.operator()
  await leads.listSubscriptions(
    { workspaceId: stack.demo.workspaceId },
    { headers: { 'x-correlation-id': 'a name with spaces' } },
  )
  const line = await until('the call', () =>
    linesOf(stack.cores[0]!.process()).find((each) => (each as { method?: string }).method === 'ListSubscriptions'),
  )
  expect(line.correlationId).toBeUndefined()
})

it('all log lines have the same fields and contain no body and no credential', async () => {
  await visitor.send('A secret of mine')
  const running = [stack.gateways[0]!, stack.cores[0]!].map((part) => part.process())
  for (const [index, each] of running.entries()) {
    const lines = linesOf(each)
    expect(lines.length).toBeGreaterThan(2)
    for (const line of lines) {
      expect(line).toMatchObject({
        level: expect.any(Number),
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
        part: ['gateway', 'core'][index],
        msg: expect.any(String),
      })
    }
    const { accessGrant, renewalToken } = visitor.session
    for (const text of ['A secret of mine', accessGrant, renewalToken, stack.demo.serviceToken])
      expect(each.output()).not.toContain(text)
  }
})

it('a gateway reports its CPU time, memory and event loop lag', async () => {
  const samples = await scrape(stack.gateways[0]!.metricsUrl)
  for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes', 'nodejs_eventloop_lag_p99_seconds'])
    expect(sumOf(samples, name)).toBeGreaterThan(0)
})

it('the metrics port answers 404 for other paths', async () => {
  const url = stack.gateways[0]!.metricsUrl.replace('/metrics', '/livez')
  expect((await fetch(url)).status).toBe(404)
})

it('a gateway counts requests by route, method and status class, and uses no unknown path as a label', async () => {
  const [{ url, metricsUrl }] = stack.gateways as [(typeof stack.gateways)[number]]
  expect((await visitor.send('Hello')).status).toBe(202)
  await fetch(`${url}/api/integrations/v1/widget/${randomUUID()}`)
  const counted = (route: string, status: string) =>
    until(`a request of ${route}`, async () =>
      sumOf(await scrape(metricsUrl), 'service_gateway_requests_total', { route, status }),
    )
  expect(await counted('/api/integrations/v1/widget/messages', '2xx')).toBeGreaterThanOrEqual(1)
  expect(await counted('unknown', '4xx')).toBe(1)
})

it('a send is one trace from the caller through gateway and core to the database, and no span contains the message text', async () => {
  const clientOperationId = randomUUID()
  const traceparent = newTraceparent()
  const { status } = await visitor.call('POST', '/messages', {
    body: { clientOperationId, body: 'Do you ship to Graz?', contentType: 'text' },
    headers: { 'Idempotency-Key': clientOperationId, traceparent },
  })
  expect(status).toBe(202)
  const [, traceId, callerSpanId] = traceparent.split('-')
  const route = '/api/integrations/v1/widget/messages'
  const request = await collector.span(`POST ${route}`, (span) => span.traceId === traceId)
  expect(request).toMatchObject({
    service: 'service-gateway',
    kind: serverKind,
    parentSpanId: callerSpanId,
    attributes: { 'http.request.method': 'POST', 'http.route': route, 'http.response.status_code': 202 },
  })
  const batch = await collector.span('send batch', childOf(request))
  expect(batch.attributes).toEqual({ 'service.batch.size': 1 })
  const sendCall = 'service.messaging.v1.MessagingService/SendVisitorMessages'
  const call = await collector.span(sendCall, childOf(batch, clientKind))
  expect(call.service).toBe('service-gateway')
  const served = await collector.span(sendCall, childOf(call, serverKind))
  expect(served.service).toBe('service-core')
  const insert = await collector.span('insert events', childOf(served, clientKind))
  expect(insert.attributes).toMatchObject({ 'db.system.name': 'mongodb', 'db.collection.name': 'events' })
  expect(JSON.stringify(collector.spans)).not.toContain('Graz')
})
