/** Where a delivery, and its latest attempt, stands (contract, section 5). */
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

/** What an attempt can come to. */
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

/** How far an attempt came that has no complete answer. */
export type AttemptPhase = 'resolve' | 'connect' | 'tls' | 'headers' | 'body'

/** Why an attempt has no complete answer: a closed list, so that no raw error, address or body is ever shown. */
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

/** What a worker saw: the destination's answer, or how it failed. */
export type AttemptFacts =
  | { status: number; retryAfterMs?: number | undefined }
  | { reason: FailureReason; phase?: AttemptPhase | undefined }

/** What became of one attempt. */
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
