import { Webhook, WebhookVerificationError } from 'standardwebhooks'
import { eventOf, type WebhookEvent } from './events.ts'
import { headerOf, readBody, type WebhookRequest } from './request.ts'
import { WebhookError } from './webhook-error.ts'

/**
 * Returns the event of a request. Reads at most 64 KiB, and verifies the signature in constant time
 * before it parses the body. Errors: `WebhookError` with the status of the answer; `TypeError` if the
 * body was parsed before.
 */
export type Verify = (request: WebhookRequest) => Promise<WebhookEvent>

const bodyMaxBytes = 65_536
const headersVersion = '1.0'
const secretFormat = /^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/
const signedHeaders = ['webhook-id', 'webhook-timestamp', 'webhook-signature']

/**
 * Creates the function that verifies requests. Give both secrets while the secret is rotated.
 * Errors: `TypeError` for a secret that is missing or not `whsec_…`.
 */
export function createVerifier(...secrets: (string | undefined)[]): Verify {
  const invalid = secrets.length === 0 || secrets.some((secret) => secret === undefined || !secretFormat.test(secret))
  if (invalid) throw new TypeError('createVerifier needs the secret of the subscription, whsec_…')
  const webhooks = secrets.map((secret) => new Webhook(secret!))

  function isSigned(body: string, headers: Record<string, string>) {
    return webhooks.some((webhook) => {
      try {
        webhook.verify(body, headers, { jsonParse: false })
        return true
      } catch (error) {
        if (error instanceof WebhookVerificationError) return false
        throw error
      }
    })
  }

  return async (request) => {
    const [mediaType = ''] = headerOf(request, 'content-type').split(';')
    if (mediaType.trim().toLowerCase() !== 'application/json') throw new WebhookError('unsupported_media_type')
    if (headerOf(request, 'x-service-webhook-version') !== headersVersion) throw new WebhookError('unsupported_version')
    // Bytes that are not UTF-8 become other text, whose signature is another one.
    const body = new TextDecoder('utf-8', { ignoreBOM: true }).decode(await readBody(request, bodyMaxBytes))
    const headers = Object.fromEntries(signedHeaders.map((name) => [name, headerOf(request, name)]))
    if (!isSigned(body, headers)) throw new WebhookError('invalid_signature')
    return eventOf(body)
  }
}
