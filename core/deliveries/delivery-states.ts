/** Status of a delivery and of its latest attempt (contract, section 5). */
export const deliveryStatuses = [
  'pending',
  'sending',
  'retry_scheduled',
  'held',
  'accepted',
  'failed',
  'dead_lettered',
] as const
export type DeliveryStatus = (typeof deliveryStatuses)[number]

/** Final statuses of an attempt. */
export type SettledStatus = Extract<DeliveryStatus, 'accepted' | 'failed' | 'retry_scheduled' | 'dead_lettered'>

export type ResponseClass =
  | 'accepted'
  | 'rejected_payload'
  | 'rejected_auth'
  | 'gone'
  | 'conflict'
  | 'redirected'
  | 'rejected'
  | 'rate_limited'
  | 'server_error'
  | 'timeout'
  | 'network_error'
  | 'destination_blocked'

/** The phase in which an attempt without a complete answer ended. */
export type AttemptPhase = 'resolve' | 'connect' | 'tls' | 'headers' | 'body'

/**
 * Why an attempt has no complete answer. A closed list, so that no raw error, address or body is
 * exposed.
 */
export type FailureReason =
  | 'timeout'
  | 'destination_blocked'
  | 'name_not_found'
  | 'name_service_failed'
  | 'connection_refused'
  | 'unreachable'
  | 'connection_reset'
  | 'certificate_invalid'
  | 'tls_failed'
  | 'protocol_error'
  | 'network_error'

/** What a worker observed: the destination's answer, or how the attempt failed. */
export type AttemptFacts =
  | { status: number; retryAfterMs?: number | undefined }
  | { reason: FailureReason; phase?: AttemptPhase | undefined }

/** The result of one attempt. */
export interface AttemptOutcome {
  status: SettledStatus
  responseClass: ResponseClass
  responseStatus?: number
  failureReason?: FailureReason
  failurePhase?: AttemptPhase
  durationMs?: number
  /** The claim under which it was sent. */
  claimId?: string
}
