import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { MongoClient } from 'mongodb'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { signAssertion } from '../support/assertion.ts'
import { imageOf } from '../support/images.ts'
import { leaksIn, planted } from '../support/leaks.ts'
import { useLocalStack } from '../support/local-stack.ts'
import { startLocalWorker } from '../support/local-worker.ts'
import type { Operator } from '../support/operator.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { startVisitor, type Visitor } from '../support/visitor.ts'

const database = testDatabase()
const stack = useLocalStack({
  database,
  env: { RATE_LIMIT_FACTOR: '1000', DELIVERY_ALLOWED_CIDRS: '127.0.0.1/32' },
})
let receiver: Receiver
let operator: Operator
let visitor: Visitor
/** Secrets, by name. No log and no stored document may contain them. */
const secrets = new Map<string, string>()
const errorTexts: string[] = []

beforeAll(async () => {
  receiver = await startReceiver()
  for (const status of [200, 401, 503]) {
    receiver.on(`/says-${status}`, (_request, response) =>
      response.writeHead(status, { 'x-planted': planted }).end(`{"error":"${planted}"}`),
    )
  }
  await startLocalWorker(stack)
  operator = stack.operator()
})
afterAll(() => receiver.close())

const clientOf = (gatewayUrl: string) => {
  const { origin, siteKey } = stack.demo
  return startVisitor({ gatewayUrl, origin, siteKey, clientInstanceId: planted })
}
const keyed = (key: string = randomUUID()) => ({ 'Idempotency-Key': key })

it('every feature works with texts that contain the marker for which the next tests search', async () => {
  const { siteKey, origin, identity, workspaceId } = stack.demo
  await operator.workspaces.updateInstallation({
    siteKey,
    capabilities: {
      identity: true,
      typing: true,
      pageContext: true,
      navigation: true,
      screenshots: true,
      preChatForm: true,
    },
    forms: { preChat: { fields: [{ name: 'name', label: 'Name', type: 'text' }] } },
  })
  const { identitySecret } = await operator.workspaces.rotateIdentitySecret({ siteKey })
  secrets.set('identity secret', identitySecret!.secret)
  visitor = await clientOf(stack.gateways[0]!.url)
  const page = { url: `${origin}/${planted}?q=${planted}`, title: planted, referrer: `${origin}/${planted}` }
  const assertion = signAssertion(
    { siteKey, ...identity },
    { claims: { sub: planted, name: planted, ctx: { plan: planted } } },
  )
  secrets.set('assertion', assertion)
  const good = [
    await visitor.call('POST', '/context/page', { body: page }),
    await visitor.send(`${planted} from the visitor`),
    await visitor.call('POST', '/typing', { body: { state: 'started' } }),
    await visitor.call('POST', '/forms/pre-chat', { body: { fields: { name: planted } }, headers: keyed() }),
    await visitor.call('POST', '/sessions/identify', { body: { assertion }, headers: keyed() }),
  ]
  expect(good.map(({ status }) => status)).toEqual([204, 202, 204, 202, 200])
  visitor.session = good.at(-1)!.body
  secrets.set('grant', visitor.session.accessGrant).set('renewal token', visitor.session.renewalToken)

  const { conversationId, sessionId } = visitor.session
  const stream = await visitor.openStream({ after: 0 })
  const agent = { displayName: planted }
  await operator.messaging.sendAgentMessage({ conversationId, clientOperationId: randomUUID(), body: planted, agent })
  await operator.commands.requestNavigation({ sessionId, url: `${origin}/${planted}`, label: planted })
  const { command } = await operator.commands.requestScreenshot({ sessionId, purpose: planted })
  const shot = `/commands/screenshots/${command!.commandId}`
  await visitor.call('POST', `${shot}/acknowledgements`, { body: { consent: 'granted' }, headers: keyed() })
  const picture = Buffer.concat([imageOf('image/png', 100), Buffer.from(planted)])
  const uploaded = await visitor.call('POST', `${shot}/upload`, {
    body: picture,
    headers: { ...keyed(), 'Content-Type': 'image/png' },
  })
  expect(uploaded.status).toBe(201)
  await until('the stream', async () => stream.events.length > 3)

  for (const status of [200, 401, 503]) {
    const { subscriptionId, secret } = await operator.leads.createSubscription({
      workspaceId,
      destinationUrl: `${receiver.http}/says-${status}`,
      mappedFields: ['name'],
    })
    secrets.set(`secret of a subscription (${status})`, secret)
    const { leadId } = await operator.leads.captureLead({ workspaceId, source: 'test', fields: { name: planted } })
    await operator.leads.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey: randomUUID() })
    await until('the request', async () => receiver.to(`/says-${status}`).length > 0)
  }
  expect(receiver.requests.every(({ body }) => body.includes(planted))).toBe(true)
  stream.close()
})

it('no error response contains the input of its request', async () => {
  const { call } = visitor
  const operation = randomUUID()
  const text = { 'Content-Type': 'text/plain' }
  const tries: [method: string, path: string, body: unknown, headers?: Record<string, string>][] = [
    [
      'POST',
      '/messages',
      { clientOperationId: operation, body: `${planted}\u0007`, contentType: planted },
      keyed(operation),
    ],
    [
      'POST',
      '/messages',
      { clientOperationId: planted, body: planted.repeat(1000), contentType: 'text' },
      keyed(operation),
    ],
    ['POST', '/messages', planted.repeat(9000), keyed()],
    ['POST', '/messages', Buffer.from(`{"body":"${planted}`), { ...keyed(), 'Content-Type': 'application/json' }],
    ['POST', '/messages', Buffer.from(planted), { ...keyed(), ...text }],
    ['POST', '/messages', { body: planted }, { 'Idempotency-Key': `${planted} !` }],
    ['POST', '/sessions/identify', { assertion: `eyJhbGciOiJIUzI1NiJ9.${planted}.${planted}` }, keyed()],
    ['POST', '/sessions/renew', { sessionId: planted, renewalToken: planted }, keyed()],
    ['GET', `/messages?access_token=${planted}`, undefined],
    ['GET', `/messages?limit=${planted}`, undefined],
    ['GET', '/messages', undefined, { Authorization: `Bearer ${planted}.${planted}.${planted}` }],
    ['GET', '/messages', undefined, { Origin: `https://${planted.toLowerCase()}.example` }],
    ['GET', '/messages', undefined, { 'X-Service-Widget-Version': planted }],
    ['GET', '/messages', undefined, { A: planted.repeat(2000) }],
    ['GET', `/config/${planted}`, undefined],
    ['GET', `/${planted}`, undefined],
    ['POST', `/commands/navigation/${planted}/acknowledgements`, { outcome: planted }, keyed()],
    ['PUT', '/messages', undefined],
  ]
  for (const [method, path, body, headers = {}] of tries) {
    const answer = await call(method, path, { body, headers })
    expect([method, path, answer.status], `${method} ${path}`).toEqual([
      method,
      path,
      expect.toSatisfy((status) => status >= 400 && status < 500),
    ])
    errorTexts.push(JSON.stringify(answer.body))
  }
  for (const path of ['SendAgentMessage', 'ListMessages']) {
    const response = await fetch(`${stack.cores[0]!.url}/service.messaging.v1.MessagingService/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${stack.demo.serviceToken}` },
      body: `{"conversationId":"${planted}","body":["${planted}"]}`,
    })
    expect(response.status).toBeGreaterThanOrEqual(400)
  }
  expect(errorTexts.flatMap(leaksIn)).toEqual([])
})

it('the database contains no readable secret', async () => {
  const client = new MongoClient(database.uri)
  const collections = await client.db(database.name).collections()
  const documents = await Promise.all(collections.map((collection) => collection.find().toArray()))
  await client.close()
  const dump = JSON.stringify(documents)
  // The dump must contain stored texts. Otherwise the next check would prove nothing.
  expect(dump).toContain(`${planted} from the visitor`)
  const own = JSON.parse(await readFile(join(stack.dataDir, 'secrets.json'), 'utf8')) as Record<string, string>
  const all = [...secrets, ...Object.entries(own), ['service token', stack.demo.serviceToken] as const]
  expect(all.length).toBeGreaterThan(9)
  for (const [name, secret] of all) {
    // Searches for the secret, the secret without its prefix, and its decoded bytes.
    const bare = secret.replace(/^(whsec_|k\d+[:.])/, '')
    for (const form of [
      secret,
      bare,
      Buffer.from(secret).toString('base64'),
      Buffer.from(bare, 'base64').toString('base64'),
    ])
      expect(dump.includes(form), `${name} can be read`).toBe(false)
  }
})

it('no log of the stack contains a secret', async () => {
  const log = () => readFile(join(inject('processOutput'), `local-${process.pid}.log`), 'utf8')
  const correlationId = randomUUID()
  await visitor.call('GET', '/messages', { headers: { 'X-Correlation-Id': correlationId } })
  // The log must contain the calls of the tests above. Otherwise the next check would prove nothing.
  await until('a later call', async () => (await log()).includes(correlationId))
  for (const [name, secret] of secrets) expect((await log()).includes(secret), name).toBe(false)
})

it('the leak detector finds each kind of secret', () => {
  const found = [
    ...secrets.values(),
    planted,
    `{"msg":"${planted}"}`,
    Buffer.from(planted).toString('base64'),
    stack.demo.serviceToken,
    `sha256=${'0a'.repeat(32)}`,
    imageOf('image/png', 40).toString('latin1'),
    'Bearer abcdefghij',
  ]
  for (const text of found) expect(leaksIn(`before ${text} after`), text.slice(0, 8)).not.toEqual([])
  expect(leaksIn('{"level":30,"part":"core","conversation":"cnv_9xy4bk8zjmejtzwbr1q2w3e4r5","status":200}')).toEqual([])
})
