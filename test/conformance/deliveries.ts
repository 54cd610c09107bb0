import { createHmac, randomUUID } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { expect } from 'vitest'
import { ResponseClass } from '#proto/lead/v1/delivery_pb.js'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { until } from '../support/until.ts'
import { createDeliveryClient, idOf } from './delivery-client.ts'
import { concurrentRule, rule } from './rule.ts'
import type { Suite } from './suite.ts'

const { ENABLED, DISABLED } = SubscriptionStatus

/** Tests of contract section 5: requests of deliveries, their outcomes and their signatures. */
export function deliveryRules(suite: () => Suite): void {
  const client = createDeliveryClient(suite)
  const { subscribe, capture, request, deliver, settled, received } = client
  const leads = () => suite().roomy.operator.leads

  rule('C5.1', async () => {
    const { subscriptionId } = await subscribe('/200')
    const leadId = await capture()
    const body = { subscriptionId, idempotencyKey: randomUUID() }
    const first = await request(`${leadId}/delivery-attempts`, body)
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
      correlationId: expect.any(String),
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    })
    const again = await request(`${leadId}/delivery-attempts`, body)
    expect([again.status, again.body.attemptId]).toEqual([200, first.body.attemptId])
  })

  rule('C5.2', async () => {
    const { subscriptionId } = await subscribe('/500')
    const first = await deliver(subscriptionId)
    await settled(first)
    const body = { idempotencyKey: randomUUID() }
    const second = await request(`retries/${first.attempt.attemptId}`, body)
    expect(second.status).toBe(201)
    const { deliveryId } = first.attempt
    expect(second.body).toMatchObject({ deliveryId, attemptNumber: 2 })
    expect((await request(`retries/${first.attempt.attemptId}`, body)).status).toBe(200)
    const accepted = await deliver((await subscribe('/200')).subscriptionId)
    await settled(accepted)
    const refused = await request(`retries/${accepted.attempt.attemptId}`, { idempotencyKey: randomUUID() })
    expect([refused.status, refused.body.code]).toEqual([409, 'AttemptNotRetryable'])
  })

  rule('C5.3', async () => {
    const { operator } = suite().roomy
    const { subscriptionId } = await subscribe('/200')
    const { subscriptionId: disabled } = await subscribe('/200')
    await leads().updateSubscription({ subscriptionId: disabled, status: DISABLED })
    const { workspace } = await operator.workspaces.createWorkspace({ name: 'Foreign' })
    const { workspaceId } = workspace!
    const foreign = await leads().captureLead({ workspaceId, source: 'test', fields: { email: 'a@b.example' } })
    const leadId = await capture()
    const other = await capture()
    const key = { idempotencyKey: randomUUID() }
    const used = { idempotencyKey: randomUUID() }
    await request(`${leadId}/delivery-attempts`, { subscriptionId, ...used })
    const cases: [status: number, code: string, path: string, body: object, token?: string][] = [
      [401, 'Unauthenticated', `${leadId}/delivery-attempts`, { subscriptionId, ...key }, 'no.session.token'],
      [
        403,
        'PermissionDenied',
        `${leadId}/delivery-attempts`,
        { subscriptionId, ...key },
        await client.sessionWith(''),
      ],
      [404, 'LeadNotFound', 'lead_unknown/delivery-attempts', { subscriptionId, ...key }],
      [404, 'LeadNotFound', `${foreign.leadId}/delivery-attempts`, { subscriptionId, ...key }],
      [404, 'SubscriptionNotFound', `${leadId}/delivery-attempts`, { subscriptionId: 'sub_unknown', ...key }],
      [404, 'AttemptNotFound', 'retries/att_unknown', key],
      [409, 'SubscriptionDisabled', `${leadId}/delivery-attempts`, { subscriptionId: disabled, ...key }],
      [409, 'IdempotencyConflict', `${other}/delivery-attempts`, { subscriptionId, ...used }],
    ]
    for (const [status, code, path, body, token] of cases) {
      const answer = await request(path, body, token)
      expect([answer.status, answer.body.code]).toEqual([status, code])
      expect(answer.body.correlationId).toBeTypeOf('string')
    }
  })

  const outcomes: [path: string, responseClass: string, status: string][] = [
    ['/204', 'accepted', 'accepted'],
    ['/400', 'rejected_payload', 'failed'],
    ['/422', 'rejected_payload', 'failed'],
    ['/401', 'rejected_auth', 'failed'],
    ['/403', 'rejected_auth', 'failed'],
    ['/404', 'gone', 'failed'],
    ['/410', 'gone', 'failed'],
    ['/409', 'conflict', 'failed'],
    ['/302-to-elsewhere', 'redirected', 'failed'],
    ['/418', 'rejected', 'failed'],
    ['/100-mb', 'rejected', 'failed'],
    ['/continue-flood', 'rejected', 'failed'],
    ['/no-http', 'unreadable_answer', 'retry_scheduled'],
    ['/large-head', 'unreadable_answer', 'retry_scheduled'],
    ['/429', 'rate_limited', 'retry_scheduled'],
    ['/500', 'server_error', 'retry_scheduled'],
    ['/408', 'server_error', 'retry_scheduled'],
    ['/425', 'server_error', 'retry_scheduled'],
  ]
  rule('C5.4', async () => {
    const found = await Promise.all(
      outcomes.map(async ([path]) => {
        const { responseClass, status } = await settled(await deliver((await subscribe(path)).subscriptionId))
        return [path, responseClass, status]
      }),
    )
    expect(found).toEqual(outcomes)
    const { receiver } = suite()
    const closed = await leads().createSubscription(client.settings('http://127.0.0.1:1/'))
    expect(await settled(await deliver(closed.subscriptionId))).toMatchObject({
      responseClass: 'network_error',
      status: 'retry_scheduled',
    })
    // The cores allow this address and the worker does not.
    const blocked = await leads().createSubscription(client.settings(`http://127.0.0.2:${receiver.port}/200`))
    expect(await settled(await deliver(blocked.subscriptionId))).toMatchObject({
      responseClass: 'destination_blocked',
      status: 'failed',
    })
  })

  rule('C5.5', async () => {
    const statusOf = async (subscriptionId: string) =>
      (await leads().getSubscription({ subscriptionId })).subscription!.status
    for (const path of ['/401', '/403', '/410']) {
      const { subscriptionId } = await subscribe(path)
      await deliver(subscriptionId)
      await until(`${path} to disable it`, async () => (await statusOf(subscriptionId)) === DISABLED)
    }
    const { subscriptionId } = await subscribe('/404')
    for (let count = 1; count <= 5; count += 1) {
      expect(await statusOf(subscriptionId)).toBe(ENABLED)
      await settled(await deliver(subscriptionId))
    }
    await until('the fifth 404 to disable it', async () => (await statusOf(subscriptionId)) === DISABLED)
  })

  rule('C5.6', async () => {
    const delaySeconds = async (path: string) => {
      const { nextRetryAt, updatedAt } = await settled(await deliver((await subscribe(path)).subscriptionId))
      return (Date.parse(nextRetryAt) - Date.parse(updatedAt)) / 1000
    }
    const cases: [path: string, least: number][] = [
      ['/503', 5],
      ['/503-retry-after-seconds', 5],
      ['/429-retry-after-seconds', 120],
      ['/429-retry-after-date', 3600],
      ['/429-retry-after-huge', 3600],
    ]
    await Promise.all(
      cases.map(async ([path, least]) => {
        const seconds = await delaySeconds(path)
        expect(seconds, path).toBeGreaterThanOrEqual(least - 0.5)
        expect(seconds, path).toBeLessThanOrEqual(least * 1.2 + 0.5)
      }),
    )
  })

  rule('C5.7', async () => {
    const first = await deliver((await subscribe('/500')).subscriptionId)
    let last = await settled(first)
    for (let number = 2; number <= 9; number += 1) {
      expect(last.status).toBe('retry_scheduled')
      const path = `retries/${last.attemptId}`
      const next = { idempotencyKey: randomUUID() }
      const repeat = () => request(path, next)
      const attempt = (await repeat()).body
      expect(attempt.attemptNumber).toBe(number)
      last = await settled({ repeat, attempt })
    }
    expect(last).toMatchObject({ status: 'dead_lettered', nextRetryAt: null })
  })

  rule('C5.10', async () => {
    const refused = [
      'ftp://receiver.example/',
      'http://user:password@127.0.0.1/',
      'http://127.0.0.1/#fragment',
      'http://169.254.169.254/latest/meta-data/',
      'http://10.0.0.1/',
      'http://168.63.129.16/',
      'http://[::1]/',
      'http://[2002:7f00:1::]/',
      'http://0x0a000001/',
      'http://[::ffff:10.0.0.1]/',
    ]
    for (const url of refused)
      await expect(leads().createSubscription(client.settings(url)), url).rejects.toThrow('ValidationFailed')
  })

  rule('C5.11', async () => {
    const { subscriptionId, secret } = await subscribe('/200')
    const rotated = await leads().rotateSubscriptionSecret({ subscriptionId })
    for (const shown of [secret, rotated.secret]) expect(shown).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    const read = [
      await leads().getSubscription({ subscriptionId }),
      await leads().listSubscriptions({ workspaceId: suite().roomy.stack.demo.workspaceId }),
    ]
    const text = JSON.stringify(read, (_key, value) => (typeof value === 'bigint' ? String(value) : value))
    expect(text).toContain(subscriptionId)
    for (const shown of [secret, rotated.secret]) expect(text).not.toContain(shown)
  })

  concurrentRule('C5.12', async () => {
    const hanging = await deliver((await subscribe('/hang')).subscriptionId)
    const quick = await deliver((await subscribe('/200')).subscriptionId)
    const start = Date.now()
    expect((await settled(quick)).status).toBe('accepted')
    expect(Date.now() - start).toBeLessThan(5_000)
    expect(await settled(hanging)).toMatchObject({ responseClass: 'timeout', status: 'retry_scheduled' })
  })

  concurrentRule('C5.8', async () => {
    const { subscriptionId, path } = await subscribe('/503')
    const waiting = await deliver(subscriptionId)
    await settled(waiting)
    await leads().updateSubscription({ subscriptionId, status: DISABLED })
    const held = async () => (await waiting.repeat()).body.status
    await until('the delivery to be held', async () => (await held()) === 'held')
    suite().receiver.on(path, (_request, response) => response.writeHead(200).end())
    await leads().updateSubscription({ subscriptionId, status: ENABLED })
    const { deliveryId } = waiting.attempt
    await until('its request', () => received(path).filter((each) => idOf(each) === deliveryId).length === 2)
  })

  concurrentRule('C5.9', async () => {
    const { subscriptionId, secret, path } = await subscribe('/503')
    const { attempt, leadId } = await deliver(subscriptionId)
    const { deliveryId } = attempt
    const both = await until('the retry', () => (received(path).length >= 2 ? received(path) : undefined))
    expect(both[0]!.body.equals(both[1]!.body)).toBe(true)
    for (const { body, headers, method } of both) {
      const signature = createHmac('sha256', secret).update(body).digest('hex')
      expect(method).toBe('POST')
      expect(headers).toMatchObject({
        'content-type': 'application/json',
        'x-service-webhook-version': '1.0',
        'x-service-webhook-id': deliveryId,
        'x-service-webhook-signature': `sha256=${signature}`,
        'webhook-id': deliveryId,
        'x-correlation-id': expect.any(String),
      })
      expect(new Webhook(secret).verify(body, headers as Record<string, string>)).toEqual({
        eventType: 'lead.ready-for-delivery',
        id: deliveryId,
        contractVersion: '1.0',
        occurredAt: expect.any(String),
        data: { reference: leadId, email: 'ada@example.com' },
      })
    }
  })

  concurrentRule('C5.27', async () => {
    const { operator, stack } = suite().roomy
    const { workspaceId } = stack.demo
    const { subscriptionId, path } = await subscribe('/503')
    const email = `${randomUUID()}@example.com`
    const { attempt, leadId } = await deliver(subscriptionId, email)
    await until('the first attempt', () => received(path).length === 1)
    const entries = [{ of: { case: 'email' as const, value: email } }]
    await operator.workspaces.addSuppressions({ workspaceId, entries, reason: 'asked' })
    const { deliveryId } = attempt
    await until('the second attempt', async () => {
      const { attempts } = await leads().listDeliveryAttempts({ deliveryId })
      return attempts.at(-1)?.responseClass === ResponseClass.SUPPRESSED
    })
    expect(received(path)).toHaveLength(1)
    const refused = await request(`${leadId}/delivery-attempts`, { subscriptionId, idempotencyKey: randomUUID() })
    expect(refused.body.code).toBe('VisitorSuppressed')
  })
}
