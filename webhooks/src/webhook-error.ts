/** Why a request is no webhook of the service, with the status of the answer to it. */
const statuses = {
  /** The content type is not `application/json`. */
  unsupported_media_type: 415,
  /** `X-Service-Webhook-Version` is missing or not `1.0`. */
  unsupported_version: 400,
  /** The body has more than 64 KiB. */
  body_too_large: 413,
  /** The connection ended within the body. */
  body_incomplete: 400,
  /** No signature belongs to a secret, or the time is more than five minutes off. */
  invalid_signature: 401,
  /** The signed body is not an event. */
  invalid_body: 400,
} as const

export type WebhookErrorCode = keyof typeof statuses

/** The request is no webhook of the service. Express and Fastify answer with the status by themselves. */
export class WebhookError extends Error {
  override readonly name = 'WebhookError'
  readonly code: WebhookErrorCode
  /** Status of the answer. */
  readonly status: number
  /** The same status, for Fastify. */
  readonly statusCode: number

  constructor(code: WebhookErrorCode, options?: ErrorOptions) {
    super(`the request is no webhook: ${code}`, options)
    this.code = code
    this.status = this.statusCode = statuses[code]
  }
}
