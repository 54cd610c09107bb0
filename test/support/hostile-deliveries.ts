import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { Webhook } from 'standardwebhooks'
import { expect } from 'vitest'

/** Creates a secret as a subscription has it. */
export const newSecret = () => `whsec_${randomBytes(32).toString('base64')}`

/** The body of a lead’s delivery. */
export const sampleBody = JSON.stringify({
  eventType: 'lead.ready-for-delivery',
  id: 'dlv_1',
  contractVersion: '1.0',
  occurredAt: '2026-11-20T12:00:00.000Z',
  data: { reference: 'lead_1', name: 'Zoë' },
})

/** Returns a function that makes the headers of a signed delivery. */
export function signerOf(secret: string) {
  return (id: string, { at = new Date(), key = secret, body = sampleBody } = {}): Record<string, string> => ({
    'content-type': 'application/json',
    'x-service-webhook-version': '1.0',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(key).sign(id, at, body),
  })
}

/** Sends a delivery, and returns the status of the answer. */
export async function statusOf(url: string, headers: Record<string, string>, content = sampleBody): Promise<number> {
  const answer = await fetch(url, { method: 'POST', headers, body: content })
  await answer.body?.cancel()
  return answer.status
}

/** Sends valid and hostile deliveries to a receiver, and expects the statuses that the document names. */
export async function checkReceiver(url: string, secret: string) {
  const signed = signerOf(secret)
  expect(await statusOf(url, signed('dlv_1'))).toBe(204)
  const otherSecret = newSecret()
  const other = new Webhook(otherSecret).sign('dlv_1', new Date(), sampleBody)
  const both = signed('dlv_1')
  both['webhook-signature'] = `${other} ${both['webhook-signature']}`
  expect(await statusOf(url, both)).toBe(204)
  expect(await statusOf(url, signed('dlv_1', { key: otherSecret }))).toBe(401)
  expect(await statusOf(url, signed('dlv_1', { at: new Date(Date.now() - 600_000) }))).toBe(401)
  expect(await statusOf(url, signed('dlv_1'), `${sampleBody} `)).toBe(401)
  expect(await statusOf(url, signed('dlv_1'), sampleBody.slice(0, -1))).toBe(401)
  for (const change of [{ eventType: 'lead.sold' }, { contractVersion: '9.0' }]) {
    const body = JSON.stringify({ ...JSON.parse(sampleBody), ...change })
    expect(await statusOf(url, signed('dlv_1', { body }), body)).toBe(204)
  }
  const { 'webhook-signature': _, ...unsigned } = signed('dlv_1')
  expect(await statusOf(url, unsigned)).toBe(401)

  const type = (text: string) => ({ ...signed('dlv_1'), 'content-type': text })
  for (const text of ['text/plain', 'application/jsonx', 'multipart/form-data; boundary=application/json'])
    expect([text, await statusOf(url, type(text))]).toEqual([text, 415])
  expect(await statusOf(url, type('application/json; charset=utf-8'))).toBe(204)
  const { 'x-service-webhook-version': __, ...unversioned } = signed('dlv_1')
  for (const version of ['1.1', '2.0', '1']) {
    expect(await statusOf(url, { ...unversioned, 'x-service-webhook-version': version })).toBe(400)
  }
  expect(await statusOf(url, unversioned)).toBe(400)
  expect(await statusOf(url, signed('dlv_2'), 'x'.repeat(70_000))).toBe(413)
  expect([413, 'closed']).toContain(await endOfEndlessBody(url, signed('dlv_3')))
  // A sender that disappears in the middle of a body does not stop the receiver.
  await abandonedRequest(url, signed('dlv_4'))
  expect(await statusOf(url, signed('dlv_1'))).toBe(204)
}

/**
 * Sends a body without end and without a length. Returns the status of the answer, or `closed` if the
 * receiver closed the connection while the body was still being sent.
 */
function endOfEndlessBody(url: string, headers: Record<string, string>): Promise<number | string | undefined> {
  const { promise, resolve } = Promise.withResolvers<number | string | undefined>()
  const sending = request(url, { method: 'POST', headers }, (answer) => {
    answer.resume()
    resolve(answer.statusCode)
    sending.destroy()
  })
  const send = () => {
    while (!sending.destroyed && sending.write('x'.repeat(16_384)));
  }
  sending.on('drain', send).on('error', () => resolve('closed'))
  send()
  return promise
}

async function abandonedRequest(url: string, headers: Record<string, string>): Promise<void> {
  const sending = request(url, { method: 'POST', headers: { ...headers, 'content-length': '1000' } })
  sending.on('error', () => {})
  sending.write('{"half":')
  await once(sending, 'socket')
  await once(sending.socket!, 'connect')
  sending.destroy()
}
