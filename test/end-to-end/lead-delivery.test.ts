import { createHmac, randomUUID } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DeliveryStatus, FailureReason, ResponseClass } from '#proto/lead/v1/delivery_pb.js'
import { startDeliveryWorker } from '../support/delivery-worker.ts'
import { useLocalStack } from '../support/local-stack.ts'
import type { Operator } from '../support/operator.ts'
import type { StartedProcess } from '../support/processes.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'

const stack = useLocalStack({ cores: 2, gateways: 0, env: { DELIVERY_ALLOWED_CIDRS: '127.0.0.1/32' } })
let receiver: Receiver
let worker: StartedProcess
let leads: Operator['leads']

beforeAll(async () => {
  receiver = await startReceiver()
  worker = (await startDeliveryWorker(stack, { LOG_LEVEL: 'debug' })).process()
  leads = stack.operator().leads
})
afterAll(() => receiver.close())

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

it('a test delivery arrives through the worker with the subscription’s headers, and is marked as a test', async () => {
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

it('a lead arrives once, with both signatures and only the mapped fields', async () => {
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

describe('the worker', () => {
  it('continues after a core ends, and logs the correlation ids of attempts, and no bodies or addresses', async () => {
    const { subscriptionId } = await subscribe('/200?core-ended')
    await stack.cores[1]!.stop()
    const { leadId } = await deliver(subscriptionId)
    await whenLatestIs(leadId, DeliveryStatus.ACCEPTED)
    await stack.cores[1]!.start()
    const { headers } = receiver.to('/200?core-ended')[0]!
    const lines = () =>
      worker
        .output()
        .match(/^\{.*\}$/gm)!
        .map((line) => JSON.parse(line))
    const attempt = await until('the line of the attempt', () =>
      lines().find(
        ({ msg, correlationId }) => msg === 'attempt ended' && correlationId === headers['x-correlation-id'],
      ),
    )
    expect(attempt.outcome).toBe('response')
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
    for (const each of lines())
      expect(each).toMatchObject({ level: expect.any(Number), time, part: 'delivery', msg: expect.any(String) })
    for (const secret of ['zoë', '127.0.0.1', 'whsec_', 'sha256=']) expect(worker.output()).not.toContain(secret)
  })
})
