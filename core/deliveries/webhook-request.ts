import { createHmac, createSecretKey } from 'node:crypto'

const webhookVersion = '1.0'
const secretPrefix = 'whsec_'

/** Lower-case hex HMAC-SHA256 of the raw body, keyed with the secret exactly as shown. */
export function bodySignature(secret: string, body: Uint8Array): string {
  return createHmac('sha256', secret).update(body).digest('hex')
}

/** The Standard Webhooks signature: id, time and body, keyed with the decoded secret. */
export function standardSignature(secret: string, id: string, timestamp: number, body: Uint8Array): string {
  // A key object is several times faster in Node than raw bytes.
  const key = createSecretKey(secret.slice(secretPrefix.length), 'base64')
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`
}

/**
 * The headers of a webhook, in lower case (specification, section 4.3; contract, section 5).
 * `secrets` are those that sign, newest first; `at` is the time of this attempt in milliseconds.
 */
export function webhookHeaders(request: {
  deliveryId: string
  correlationId: string
  body: Uint8Array
  secrets: [string, ...string[]]
  at: number
}): Record<string, string> {
  const { deliveryId, correlationId, body, secrets, at } = request
  const timestamp = Math.floor(at / 1000)
  return {
    'content-type': 'application/json',
    'user-agent': `Service-Webhooks/${webhookVersion}`,
    'x-correlation-id': correlationId,
    'x-service-webhook-version': webhookVersion,
    'x-service-webhook-id': deliveryId,
    'x-service-webhook-signature': `sha256=${bodySignature(secrets[0], body)}`,
    'webhook-id': deliveryId,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': secrets.map((secret) => standardSignature(secret, deliveryId, timestamp, body)).join(' '),
  }
}
