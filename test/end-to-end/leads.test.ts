import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Client, type ConnectError, createClient } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import { createConnectTransport as createWebTransport } from '@connectrpc/connect-web'
import { decodeJwt } from 'jose'
import { beforeAll, describe, expect, test } from 'vitest'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { createKeyring, parseSecretKeys } from '../../core/keys/keyring.ts'
import { openStream } from '../../core/test/delivery-stream.ts'
import { createAccess } from '../../core/workspaces/access.ts'
import { operatorScopes } from '../../core/workspaces/workspace-sessions.ts'
import { type LocalStack, startLocalStack } from '../support/local-stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'

const database = testDatabase()
// With an IP address, the core does not look up the host. Nothing is sent to this address, because
// the test starts no worker.
const destinationUrl = 'https://93.184.216.34/hook'
let stack: LocalStack
let leads: Client<typeof LeadService>
let worker: Client<typeof LeadService>

beforeAll(async () => {
  stack = await startLocalStack({ database })
  const secrets = JSON.parse(await readFile(join(stack.dataDir, 'secrets.json'), 'utf8'))
  const access = createAccess(createKeyring(parseSecretKeys(secrets.secretKeys)), Date.now)
  const token = await access.issue({ subject: 'worker', scopes: ['deliveries:work'] })
  leads = createClient(LeadService, transportAs(stack.demo.workspaceSession))
  worker = createClient(LeadService, transportAs(token))
})

function transportAs(token: string) {
  return createConnectTransport({
    baseUrl: stack.cores[0]!.url,
    httpVersion: '2',
    interceptors: [
      (next) => (request) => {
        request.header.set('authorization', `Bearer ${token}`)
        return next(request)
      },
    ],
  })
}

async function post(path: string, body: object, session = stack.demo.workspaceSession) {
  const response = await fetch(`${stack.gateways[0]!.url}/api/leads/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${session}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  // biome-ignore lint/suspicious/noExplicitAny: tests check the shape of bodies themselves
  return { status: response.status, body: (await response.json()) as any }
}

async function newLead() {
  const { workspaceId } = stack.demo
  const { leadId } = await leads.captureLead({ workspaceId, source: 'test', fields: { email: 'ada@example.com' } })
  const { subscriptionId } = await leads.createSubscription({ workspaceId, destinationUrl, mappedFields: ['email'] })
  return { leadId, subscriptionId }
}

describe('the demo’s workspace session', () => {
  test('has every operator scope for the demo workspace and an expiry', () => {
    const { scope, wid, exp, aud } = decodeJwt(stack.demo.workspaceSession)
    expect(new Set(String(scope).split(' '))).toEqual(operatorScopes)
    expect([wid, aud]).toEqual([stack.demo.workspaceId, 'service.workspace'])
    expect(exp).toBeGreaterThan(Date.now() / 1000)
  })

  test('gives the console access to the cores through the gateway', async () => {
    const { url } = stack.gateways[0]!
    const headers = { authorization: `Bearer ${stack.demo.workspaceSession}` }
    const client = createClient(MessagingService, createWebTransport({ baseUrl: `${url}/rpc` }))
    expect(await client.listConversations({}, { headers })).toMatchObject({ conversations: [] })
    const other = client.listConversations({ workspaceId: 'ws_other' }, { headers })
    expect(await other.catch((error: ConnectError) => error.rawMessage)).toBe('NotFound')
    const leave = new AbortController()
    const frames = client.watchConversations({}, { headers, signal: leave.signal })[Symbol.asyncIterator]()
    expect((await frames.next()).value?.frame.case).toBe('ready')
    leave.abort()
  })
})

describe('a delivery attempt', () => {
  test('is created once if its request is repeated with the same idempotency key', async () => {
    const { leadId, subscriptionId } = await newLead()
    const idempotencyKey = randomUUID()
    const first = await post(`${leadId}/delivery-attempts`, { subscriptionId, idempotencyKey })
    expect(first.status).toBe(201)
    expect(first.body).toEqual({
      attemptId: expect.stringMatching(/^att_/),
      deliveryId: expect.stringMatching(/^dlv_/),
      leadId,
      subscriptionId,
      attemptNumber: 1,
      status: 'pending',
      responseClass: null,
      responseStatus: null,
      nextRetryAt: null,
      correlationId: expect.stringMatching(/\w/),
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      updatedAt: expect.stringMatching(/\.\d{3}Z$/),
    })
    const repeats = await Promise.all(
      Array.from({ length: 4 }, () => post(`${leadId}/delivery-attempts`, { subscriptionId, idempotencyKey })),
    )
    for (const { status, body } of repeats) expect([status, body]).toEqual([200, first.body])
  })

  test('can be retried by an operator after it has failed, but not before', async () => {
    const { leadId, subscriptionId } = await newLead()
    const { body } = await post(`${leadId}/delivery-attempts`, { subscriptionId, idempotencyKey: randomUUID() })
    const early = await post(`retries/${body.attemptId}`, { idempotencyKey: randomUUID() })
    expect([early.status, early.body.code]).toEqual([409, 'AttemptNotRetryable'])
    await failAtWorker(body.attemptId)
    const idempotencyKey = randomUUID()
    const retried = await post(`retries/${body.attemptId}`, { idempotencyKey })
    expect([retried.status, retried.body]).toMatchObject([
      201,
      { deliveryId: body.deliveryId, attemptNumber: 2, status: 'pending' },
    ])
    const again = await post(`retries/${body.attemptId}`, { idempotencyKey })
    expect([again.status, again.body]).toEqual([200, retried.body])
  })
})

/** Takes due deliveries like a worker and reports a 422 for this attempt. */
async function failAtWorker(attemptId: string) {
  const stream = await openStream(worker)
  const found = await until('the delivery', () => stream.received().find((each) => each.attemptId === attemptId))
  stream.answer([found], 422)
  await until('the record', () => stream.recorded().some(({ held }) => held))
  stream.leave()
}
