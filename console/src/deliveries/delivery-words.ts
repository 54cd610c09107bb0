import {
  AttemptPhase,
  type DeliveryAttempt,
  DeliveryStatus,
  FailureReason,
  ResponseClass,
} from '#proto/lead/v1/delivery_pb.js'

/** Text and tone of each status, by its name in the public API. */
export const deliveryStatuses = {
  pending: ['Pending', 'info'],
  sending: ['Sending', 'info'],
  retry_scheduled: ['Retry scheduled', 'warn'],
  held: ['Waiting: destination disabled', 'warn'],
  accepted: ['Delivered', 'ok'],
  failed: ['Failed', 'bad'],
  dead_lettered: ['Given up', 'bad'],
} as const

type StatusName = keyof typeof deliveryStatuses

export const wordOf = (status: DeliveryStatus) => deliveryStatuses[DeliveryStatus[status]?.toLowerCase() as StatusName]

export const statusByName = (name = '') =>
  name in deliveryStatuses ? DeliveryStatus[name.toUpperCase() as keyof typeof DeliveryStatus] : undefined

const classes: Partial<Record<keyof typeof ResponseClass, string>> = {
  REJECTED_PAYLOAD: 'Payload rejected',
  REJECTED_AUTH: 'Authorization rejected',
  GONE: 'Destination gone',
  CONFLICT: 'Conflict',
  REDIRECTED: 'Redirected (not followed)',
  REJECTED: 'Rejected',
  RATE_LIMITED: 'Rate limited',
  SERVER_ERROR: 'Server error',
  TIMEOUT: 'Timed out',
  NETWORK_ERROR: 'Network error',
  DESTINATION_BLOCKED: 'Destination not allowed',
  SUPPRESSED: 'On the do-not-contact list; nothing was sent',
  UNREADABLE_ANSWER: 'Unreadable answer',
}

const reasons: Partial<Record<keyof typeof FailureReason, string>> = {
  TIMEOUT: 'timed out',
  DESTINATION_BLOCKED: 'address not allowed',
  NAME_NOT_FOUND: 'host name not found',
  NAME_SERVICE_FAILED: 'DNS server did not respond',
  CONNECTION_REFUSED: 'connection refused',
  UNREACHABLE: 'host unreachable',
  CONNECTION_RESET: 'connection reset',
  CERTIFICATE_INVALID: 'invalid certificate',
  TLS_FAILED: 'TLS failed',
  PROTOCOL_ERROR: 'response was not HTTP, or its head was too long',
  NETWORK_ERROR: 'network error',
  RESPONSE_TOO_LARGE: 'response was larger than 64 KiB',
}

const phases: Partial<Record<keyof typeof AttemptPhase, string>> = {
  RESOLVE: 'during DNS lookup',
  CONNECT: 'while connecting',
  TLS: 'during the TLS handshake',
  HEADERS: 'while waiting for the response',
  BODY: 'while reading the response',
}

/** A body above the limit is never sent, and not stored. */
const isTooLarge = ({ responseClass, responseStatus }: DeliveryAttempt) =>
  responseClass === ResponseClass.REJECTED_PAYLOAD && responseStatus === undefined

export function outcomeText(attempt: DeliveryAttempt) {
  if (isTooLarge(attempt)) return 'Larger than 64 KiB; nothing was sent'
  const { responseClass, responseStatus, failureReason, failurePhase } = attempt
  const parts = [
    classes[ResponseClass[responseClass] as keyof typeof ResponseClass],
    responseStatus !== undefined && `HTTP ${responseStatus}`,
    reasons[FailureReason[failureReason] as keyof typeof FailureReason],
    phases[AttemptPhase[failurePhase] as keyof typeof AttemptPhase],
  ]
  return parts.filter(Boolean).join(', ')
}

export const isRetryable = (attempt: DeliveryAttempt) =>
  [DeliveryStatus.RETRY_SCHEDULED, DeliveryStatus.FAILED, DeliveryStatus.DEAD_LETTERED].includes(attempt.status) &&
  !isTooLarge(attempt)
