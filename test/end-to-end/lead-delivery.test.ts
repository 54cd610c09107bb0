import { createHmac, randomUUID } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DeliveryStatus, FailureReason, ResponseClass } from '#proto/lead/v1/delivery_pb.js'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { itLong } from '../support/is-long.ts'
import { useLocalStack } from '../support/local-stack.ts'
import type { Operator } from '../support/operator.ts'
import { freePort, type StartedProcess, startProcess } from '../support/processes.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'

const env = { DELIVERY_ALLOWED_CIDRS: '127.0.0.1/32' }
const stack = useLocalStack({ cores: 2, gateways: 0, env })
let receiver: Receiver
let worker: StartedProcess
let leads: Operator['leads']

beforeAll(async () => {
  receiver = await startReceiver()
  worker = await startWorker()
  leads = stack.operator().leads
})
afterAll(() => receiver.close())

async function startWorker(): Promise<StartedProcess> {
  const port = await freePort()
  return startProcess({
    entry: 'delivery/main.ts',
    name: 'delivery worker',
    env: {
      ...env,
      DATA_DIR: stack.dataDir,
      CORE_URLS: stack.cores.map(({ url }) => url).join(','),
      DELIVERY_PORT: String(port),
      LOG_LEVEL: 'debug',
    },
    readyUrl: `http://127.0.0.1:${port}/readyz`,
  })
}

const workspaceId = () => stack.demo.workspaceId

async function subscribe(path: string) {
  const destinationUrl = `${receiver.http}${path}`
  return leads.createSubscription({ workspaceId: workspaceId(), destinationUrl, mappedFields: ['email'] })
}

const capture = async () =>
  (
    await leads.captureLead({
      workspaceId: workspaceId(),
      source: 'test',
      fields: { email: 'zoë@example.com', phone: 'stays here' },
    })
  ).leadId

async function deliver(subscriptionId: string) {
  const leadId = await capture()
  const { attempt } = await leads.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey: randomUUID() })
  return { leadId, attempt: attempt! }
}

const attemptsOf = async (leadId: string) => (await leads.listDeliveryAttempts({ leadId })).attempts

/** Waits until the latest attempt has this status; returns all attempts. */
const whenLatestIs = (leadId: string, status: DeliveryStatus) =>
  until(`an attempt that is ${DeliveryStatus[status]}`, async () => {
    const attempts = await attemptsOf(leadId)
    return attempts.at(-1)?.status === status ? attempts : undefined
  })

describe('a test delivery', () => {
  it('arrives through the worker with the subscription’s headers, and is marked as a test', async () => {
    const destinationUrl = `${receiver.http}/200?test`
    const { subscriptionId, secret } = await leads.createSubscription({
      workspaceId: workspaceId(),
      destinationUrl,
      mappedFields: ['email'],
      headers: [{ name: 'Authorization', value: 'Bearer crm-key' }],
    })
    const { attempt } = await leads.sendTestDelivery({ subscriptionId, idempotencyKey: randomUUID() })
    const { deliveryId } = attempt!
    await until('the test to be accepted', async () => {
      const { attempts } = await leads.listDeliveryAttempts({ deliveryId })
      return attempts[0]?.status === DeliveryStatus.ACCEPTED
    })
    const [{ headers, body }] = receiver.to('/200?test') as [Receiver['requests'][number]]
    expect(headers).toMatchObject({ authorization: 'Bearer crm-key', 'webhook-id': deliveryId })
    const sent = new Webhook(secret).verify(body, headers as Record<string, string>)
    expect(sent).toMatchObject({ id: deliveryId, test: true, data: { email: 'test@example.com' } })
    expect(worker.output()).not.toContain('crm-key')
  })
})

describe('a lead', () => {
  it('arrives once, with both signatures and only the mapped fields', async () => {
    const { subscriptionId, secret } = await subscribe('/200?accepted')
    const { leadId, attempt } = await deliver(subscriptionId)
    const [done] = await whenLatestIs(leadId, DeliveryStatus.ACCEPTED)
    expect(done).toMatchObject({
      attemptId: attempt.attemptId,
      attemptNumber: 1,
      responseClass: ResponseClass.ACCEPTED,
      responseStatus: 200,
      failureReason: FailureReason.UNSPECIFIED,
    })
    const received = receiver.to('/200?accepted')
    expect(received).toHaveLength(1)
    const { headers, body } = received[0]!
    const signature = createHmac('sha256', secret).update(body).digest('hex')
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'x-service-webhook-version': '1.0',
      'x-service-webhook-id': attempt.deliveryId,
      'x-service-webhook-signature': `sha256=${signature}`,
      'x-correlation-id': done!.correlationId,
    })
    const verified = new Webhook(secret).verify(body, headers as Record<string, string>)
    expect(verified).toMatchObject({ eventType: 'lead.ready-for-delivery', id: attempt.deliveryId })
    expect((verified as { data: object }).data).toEqual({ reference: leadId, email: 'zoë@example.com' })
  })

  itLong('is retried with the same bytes and id after a 503', async () => {
    let calls = 0
    receiver.on('/not-ready', (_request, response) => response.writeHead(calls++ === 0 ? 503 : 200).end())
    const { subscriptionId } = await subscribe('/not-ready')
    const { leadId } = await deliver(subscriptionId)
    const attempts = await whenLatestIs(leadId, DeliveryStatus.ACCEPTED)
    expect(attempts.map(({ attemptNumber, responseStatus }) => [attemptNumber, responseStatus])).toEqual([
      [1, 503],
      [2, 200],
    ])
    const [first, second] = receiver.to('/not-ready')
    expect(second?.body).toEqual(first?.body)
    expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id'])
  })

  it('is sent again if an operator requests a retry of its failed attempt', async () => {
    let status = 422
    receiver.on('/mended', (_request, response) => response.writeHead(status).end(`status ${status}`))
    const { subscriptionId } = await subscribe('/mended')
    const { leadId, attempt } = await deliver(subscriptionId)
    await whenLatestIs(leadId, DeliveryStatus.FAILED)
    status = 202
    await leads.retryDeliveryAttempt({ attemptId: attempt.attemptId, idempotencyKey: randomUUID() })
    const attempts = await whenLatestIs(leadId, DeliveryStatus.ACCEPTED)
    const answers = attempts.map(({ attemptNumber, responseStatus, responseText }) => [
      attemptNumber,
      responseStatus,
      responseText,
    ])
    expect(answers).toEqual([
      [1, 422, 'status 422'],
      [2, 202, ''],
    ])
  })

  itLong('is held while its subscription is disabled and arrives after it is enabled', async () => {
    let status = 503
    receiver.on('/not-yet', (_request, response) => response.writeHead(status).end())
    const { subscriptionId } = await subscribe('/not-yet')
    const { leadId } = await deliver(subscriptionId)
    await whenLatestIs(leadId, DeliveryStatus.RETRY_SCHEDULED)
    await leads.updateSubscription({ subscriptionId, status: SubscriptionStatus.DISABLED })
    await whenLatestIs(leadId, DeliveryStatus.HELD)
    status = 200
    await leads.updateSubscription({ subscriptionId, status: SubscriptionStatus.ENABLED })
    await whenLatestIs(leadId, DeliveryStatus.ACCEPTED)
    expect(receiver.to('/not-yet')).toHaveLength(2)
  })

  it('causes the core to disable its subscription if the destination answers 401', async () => {
    const { subscriptionId } = await subscribe('/401')
    const { leadId } = await deliver(subscriptionId)
    await whenLatestIs(leadId, DeliveryStatus.FAILED)
    // The core records the attempt first and then disables the subscription.
    await until('the subscription to be disabled', async () => {
      const { subscription } = await leads.getSubscription({ subscriptionId })
      return subscription?.status === SubscriptionStatus.DISABLED || undefined
    })
  })

  it('is scheduled for a retry after a connection reset, and its attempt has the failure reason', async () => {
    const { subscriptionId } = await subscribe('/reset-in-headers')
    const { leadId } = await deliver(subscriptionId)
    const [attempt] = await whenLatestIs(leadId, DeliveryStatus.RETRY_SCHEDULED)
    expect(attempt).toMatchObject({
      responseClass: ResponseClass.NETWORK_ERROR,
      failureReason: FailureReason.CONNECTION_RESET,
    })
    expect(attempt?.nextRetryAt).toBeDefined()
  })
})

describe('the worker', () => {
  it('continues after a core ends and logs no bodies or addresses', async () => {
    const { subscriptionId } = await subscribe('/200?core-ended')
    await stack.cores[1]!.stop()
    const { leadId } = await deliver(subscriptionId)
    await whenLatestIs(leadId, DeliveryStatus.ACCEPTED)
    await stack.cores[1]!.start()
    const log = worker.output()
    expect(log).toContain('attempt ended')
    for (const secret of ['zoë', '127.0.0.1', 'whsec_', 'sha256=']) expect(log).not.toContain(secret)
  })

  itLong('stops on SIGTERM and delivers later leads after a restart', async () => {
    worker.kill('SIGTERM')
    expect((await worker.exited).code).toBe(0)
    const { subscriptionId } = await subscribe('/200?later')
    const { leadId } = await deliver(subscriptionId)
    worker = await startWorker()
    await whenLatestIs(leadId, DeliveryStatus.ACCEPTED)
    expect(receiver.to('/200?later')).toHaveLength(1)
  })
})
