import { createServer } from 'node:http'
import { expect, it, onTestFinished } from 'vitest'
import { isRetried } from '../../admin/listen/forwarder.ts'
import { runAdmin } from '../../admin/run-admin.ts'
import { classify } from '../../core/deliveries/outcomes.ts'
import { createVerifier, type WebhookEvent } from '../../webhooks/src/index.ts'
import { adminHere } from '../support/admin.ts'
import { listen } from '../support/listen.ts'
import { useLocalStack } from '../support/local-stack.ts'
import { startSilentServer } from '../support/silent-server.ts'
import { until } from '../support/until.ts'

const stack = useLocalStack({ coreEnv: { DELIVERY_ALLOWED_CIDRS: '127.0.0.1/32' } })

/** Starts a receiver that verifies with the package, and the command that sends to it. */
async function listenTo(...args: string[]) {
  const events: WebhookEvent[] = []
  let status = 204
  const lines: string[] = []
  const stop = new AbortController()
  const secretOf = () => /^WEBHOOK_SECRET=(\S+)$/m.exec(lines.join('\n'))?.[1]
  const receiver = createServer(async (request, response) => {
    const event = await createVerifier(secretOf())(request).catch(() => undefined)
    if (event && status < 300) events.push(event)
    response.writeHead(event ? status : 401).end()
  })
  const { url } = await listen(receiver)
  const ended = runAdmin({
    args: ['events', 'listen', '--forward-to', url, ...args],
    env: { DATA_DIR: stack.dataDir, CORE_URL: stack.cores[0]!.url },
    print: (line) => lines.push(line),
    printError: (line) => lines.push(line),
    untilStopped: () => stop.signal,
  })
  onTestFinished(() => {
    stop.abort()
    receiver.close()
  })
  return {
    events,
    lines,
    ended,
    stop: () => stop.abort(),
    answer(next: number) {
      status = next
    },
    /** Waits until the command follows the events. */
    ready: () => until('the secret', () => secretOf() !== undefined),
  }
}

const typesOf = (events: WebhookEvent[]) =>
  events.map((event) => (event.eventType === 'unknown' ? event.receivedType : event.eventType))

it('events listen sends new events with valid signatures, also after a restart of the core, and continues where it stopped', async () => {
  const first = await listenTo()
  await first.ready()
  const visitor = await stack.newVisitor()
  await visitor.send('one')
  await until('the first message', () => typesOf(first.events).includes('message.visitor'))
  await stack.cores[0]!.stop()
  await until('the report', () => first.lines.some((line) => line.includes('the core does not answer')))
  await stack.cores[0]!.start()
  await until('the second message', async () => {
    await visitor.send('two', { clientOperationId: 'two' }).catch(() => undefined)
    return typesOf(first.events).filter((type) => type === 'message.visitor').length >= 2
  })
  expect(typesOf(first.events)).toEqual(['conversation.created', 'message.visitor', 'message.visitor'])
  expect(first.events[1]).toMatchObject({
    data: { conversationId: visitor.session.conversationId, sequence: 1, body: 'one' },
  })

  first.answer(500)
  const three = { clientOperationId: 'three' }
  await until('the third message', async () => (await visitor.send('three', three)).status === 202)
  await until('the refusal', () => first.lines.some((line) => line.includes('500 in')))
  first.stop()
  expect(await first.ended).toBe(0)
  const cursor = /1 events were not accepted\. Continue with --replay (\S+)$/.exec(first.lines.at(-1)!)?.[1]
  const second = await listenTo('--replay', cursor!)
  await until('the refused message', () => second.events.length > 0)
  expect(second.events[0]).toMatchObject({ data: { body: 'three' } })

  const ids = first.events.map(({ id }) => id)
  const again = await listenTo('--replay', new Date(Date.now() - 3_600_000).toISOString(), '--type', 'message.visitor')
  await until('all messages', () => again.events.length === 3)
  expect(again.events.map(({ id }) => id)).toEqual([ids[1], ids[2], second.events[0]!.id])
})

it('events listen sends tags and ratings with their content', async () => {
  const listening = await listenTo()
  await listening.ready()
  const visitor = await stack.newVisitor()
  await visitor.send('hello')
  const { messaging } = stack.operator()
  const { conversationId } = visitor.session
  await messaging.addTag({ conversationId, tag: 'refund' })
  await messaging.removeTag({ conversationId, tag: 'refund' })
  await messaging.closeConversation({ conversationId, requestRating: true })
  const headers = { 'Idempotency-Key': 'rating-1' }
  await visitor.call('POST', '/ratings', { body: { score: 4, comment: 'Quick' }, headers })
  await until('the rating', () => typesOf(listening.events).includes('rating.given'))
  const dataOf = (type: string) =>
    listening.events.filter(({ eventType }) => eventType === type).map(({ data }) => data)
  const about = { reference: conversationId, conversationId }
  expect(dataOf('conversation.tagged')).toEqual([{ ...about, tag: 'refund' }])
  expect(dataOf('conversation.untagged')).toEqual([{ ...about, tag: 'refund' }])
  expect(dataOf('rating.given')).toEqual([{ ...about, score: 4, comment: 'Quick' }])
})

it('events listen with a subscription sends its deliveries with their ids and the sent names of mapped fields', async () => {
  const { leads } = stack.operator()
  const { workspaceId } = stack.demo
  const { subscription } = await leads.createSubscription({
    workspaceId,
    destinationUrl: 'http://127.0.0.1:9/leads',
    mappedFields: ['email', 'phone'],
    sentNames: { phone: 'tel' },
    automatic: true,
  })
  const { subscriptionId } = subscription!
  const listening = await listenTo('--subscription', subscriptionId)
  await listening.ready()
  const captured = await leads.captureLead({
    workspaceId,
    source: 'test',
    fields: { email: 'a@b.example', phone: '1', company: 'Acme' },
  })
  await until('the lead', () => listening.events.length > 0)
  const { deliveries } = await leads.listDeliveries({ workspaceId, subscriptionId })
  expect(listening.events).toEqual([
    expect.objectContaining({
      eventType: 'lead.ready-for-delivery',
      id: deliveries[0]!.deliveryId,
      data: { reference: captured.leadId, email: 'a@b.example', tel: '1' },
    }),
  ])
  listening.stop()
  expect(await listening.ended).toBe(0)
})

it.each([
  [['--forward-to', 'localhost:9000'], '--forward-to must be a URL'],
  [['--forward-to', 'http://127.0.0.1:1/', '--replay', '2026-13-01'], '--replay must be a cursor or an ISO time'],
  [['--forward-to', 'http://127.0.0.1:1/', '--replay', 'x'], '/cursor format'],
  [['--forward-to', 'http://127.0.0.1:1/', '--type', 'lead.sold'], '/types/0'],
])('events listen %j fails with %s', async (args, message) => {
  const errors: string[] = []
  const status = await runAdmin({
    args: ['events', 'listen', ...args],
    env: { DATA_DIR: stack.dataDir, CORE_URL: stack.cores[0]!.url },
    print() {},
    printError: (text) => errors.push(text),
  })
  expect([status > 0, errors.join()]).toEqual([true, expect.stringContaining(message)])
})

it.each(['feed', 'subscription'])(
  'events listen of a %s fails within seconds if the core accepts connections and is silent',
  async (kind) => {
    const { port } = await startSilentServer()
    const { code, stderr } = await adminHere(
      [
        'events',
        'listen',
        '--forward-to',
        'http://127.0.0.1:1/',
        '--workspace',
        'ws_1',
        ...(kind === 'subscription' ? ['--subscription', 'sub_1'] : []),
      ],
      { CORE_URL: `http://127.0.0.1:${port}`, SERVICE_TOKEN: 'token' },
    )
    expect([code, stderr]).toEqual([
      1,
      'admin: the core has not answered in time. Check CORE_URL, and whether GET /readyz of the core answers\n',
    ])
  },
  15_000,
)

it('events listen retries the same statuses as the deliveries', () => {
  for (let status = 200; status < 600; status += 1)
    expect([status, isRetried(status)]).toEqual([status, classify({ status }).retryable])
})
