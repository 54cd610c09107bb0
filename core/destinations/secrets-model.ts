/**
 * URL of a destination. Its path and query may contain credentials, so it is stored encrypted, and
 * only its origin is shown.
 */
export interface SealedDestination {
  sealed: string
  /** Scheme, host and port. Values of custom headers belong to the origin they were entered for. */
  origin: string
}

/** A signing secret of a subscription. */
export interface WebhookSecret {
  secretId: string
  sealed: string
  /** First characters of the secret, so that operators can identify it. */
  hint: string
  createdAt: Date
  /**
   * Time after which requests are no longer signed with this secret. Set when a newer secret
   * replaces this one.
   */
  expiresAt?: Date
  /**
   * Set by a rotation and removed when an operator activates the secret. While it is set, an older
   * live secret signs `X-Service-Webhook-Signature`.
   */
  pending?: true
}

/** A header that the operator adds to each request of a subscription. */
export interface CustomHeader {
  name: string
  sealed: string
}
