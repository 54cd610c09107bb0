import { createHmac, createSecretKey } from 'node:crypto'

const webhookVersion = '1.0'
const secretPrefix = 'whsec_'

/** Returns the HMAC-SHA256 of the raw body in hex. The key is the secret exactly as shown to the operator. */
export function bodySignature(secret: string, body: Uint8Array): string {
  return createHmac('sha256', secret).update(body).digest('hex')
}

/** Returns the Standard Webhooks signature of id, time and body. The key is the decoded secret. */
export function standardSignature(secret: string, id: string, timestamp: number, body: Uint8Array): string {
  // Node computes an HMAC several times faster with a key object than with raw bytes.
  const key = createSecretKey(secret.slice(secretPrefix.length), 'base64')
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`
}

/**
 * Returns the headers of a webhook in lower case (specification, section 4.3; contract, section 5),
 * without custom headers. `at` is in milliseconds.
 */
export function webhookHeaders(request: {
  deliveryId: string
  correlationId: string
  body: Uint8Array
  /** `active` signs the body alone. `all` sign id, time and body. */
  secrets: { active: string; all: string[] }
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
    'x-service-webhook-signature': `sha256=${bodySignature(secrets.active, body)}`,
    'webhook-id': deliveryId,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': secrets.all.map((secret) => standardSignature(secret, deliveryId, timestamp, body)).join(' '),
  }
}
