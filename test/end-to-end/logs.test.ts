import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startDeliveryWorker, type WorkerProcess } from '../support/delivery-worker.ts'
import type { StartedProcess } from '../support/processes.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import type { Visitor } from '../support/visitor.ts'

const database = testDatabase()
const env = { LOG_LEVEL: 'debug', DELIVERY_ALLOWED_CIDRS: '127.0.0.1/32' }
let stack: Stack
let receiver: Receiver
let worker: WorkerProcess
let visitor: Visitor

beforeAll(async () => {
  receiver = await startReceiver()
  stack = await startStack({ database, env })
  worker = await startDeliveryWorker(stack, env)
  visitor = await stack.newVisitor()
})
afterAll(() => receiver.close())

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

it('an attempt is logged with the correlation id that its destination received', async () => {
  const { leads } = stack.operator()
  const { workspaceId } = stack.demo
  const { subscriptionId } = await leads.createSubscription({ workspaceId, destinationUrl: `${receiver.http}/200` })
  const { leadId } = await leads.captureLead({ workspaceId, source: 'test', fields: { email: 'zoe@example.com' } })
  await leads.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey: randomUUID() })
  const { headers } = await until('the request', () => receiver.to('/200')[0])
  const line = await findLine(worker.process(), String(headers['x-correlation-id']), 'attempt ended')
  expect(line).toMatchObject({ part: 'delivery', outcome: 'response' })
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

it('all log lines have the same fields and contain no body, credential or destination', async () => {
  await visitor.send('A secret of mine')
  const running = [stack.gateways[0]!, stack.cores[0]!, worker].map((part) => part.process())
  for (const [index, each] of running.entries()) {
    const lines = linesOf(each)
    expect(lines.length).toBeGreaterThan(2)
    for (const line of lines) {
      expect(line).toMatchObject({
        level: expect.any(Number),
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
        part: ['gateway', 'core', 'delivery'][index],
        msg: expect.any(String),
      })
    }
    const { accessGrant, renewalToken } = visitor.session
    for (const text of ['A secret of mine', 'zoe@', accessGrant, renewalToken, stack.demo.serviceToken, receiver.http])
      expect(each.output()).not.toContain(text)
  }
})
