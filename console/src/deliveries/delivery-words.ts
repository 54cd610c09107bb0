import {
  AttemptPhase,
  type DeliveryAttempt,
  DeliveryStatus,
  FailureReason,
  ResponseClass,
} from '#proto/lead/v1/delivery_pb.js'

interface StatusLabel {
  /** Name of the status in the public API. */
  name: string
  text: string
  tone: 'ok' | 'info' | 'warn' | 'bad'
}

export const deliveryStatuses: ReadonlyMap<DeliveryStatus, StatusLabel> = new Map<DeliveryStatus, StatusLabel>([
  [DeliveryStatus.PENDING, { name: 'pending', text: 'Pending', tone: 'info' }],
  [DeliveryStatus.SENDING, { name: 'sending', text: 'Sending', tone: 'info' }],
  [DeliveryStatus.RETRY_SCHEDULED, { name: 'retry_scheduled', text: 'Retry scheduled', tone: 'warn' }],
  [DeliveryStatus.HELD, { name: 'held', text: 'Waiting: destination is off', tone: 'warn' }],
  [DeliveryStatus.ACCEPTED, { name: 'accepted', text: 'Delivered', tone: 'ok' }],
  [DeliveryStatus.FAILED, { name: 'failed', text: 'Failed', tone: 'bad' }],
  [DeliveryStatus.DEAD_LETTERED, { name: 'dead_lettered', text: 'Given up', tone: 'bad' }],
])

export const statusByName = (name: string | undefined): DeliveryStatus | undefined =>
  [...deliveryStatuses].find(([, word]) => word.name === name)?.[0]

const classes: Partial<Record<ResponseClass, string>> = {
  [ResponseClass.REJECTED_PAYLOAD]: 'Payload rejected',
  [ResponseClass.REJECTED_AUTH]: 'Authorization rejected',
  [ResponseClass.GONE]: 'Destination gone',
  [ResponseClass.CONFLICT]: 'Conflict',
  [ResponseClass.REDIRECTED]: 'Redirected (not followed)',
  [ResponseClass.REJECTED]: 'Rejected',
  [ResponseClass.RATE_LIMITED]: 'Rate limited',
  [ResponseClass.SERVER_ERROR]: 'Server error',
  [ResponseClass.TIMEOUT]: 'Timed out',
  [ResponseClass.NETWORK_ERROR]: 'Network error',
  [ResponseClass.DESTINATION_BLOCKED]: 'Destination not allowed',
  [ResponseClass.SUPPRESSED]: 'On the do-not-contact list; nothing was sent',
  [ResponseClass.UNREADABLE_ANSWER]: 'Unreadable answer',
}

const reasons: Partial<Record<FailureReason, string>> = {
  [FailureReason.TIMEOUT]: 'timed out',
  [FailureReason.DESTINATION_BLOCKED]: 'address not allowed',
  [FailureReason.NAME_NOT_FOUND]: 'host name not found',
  [FailureReason.NAME_SERVICE_FAILED]: 'DNS server did not respond',
  [FailureReason.CONNECTION_REFUSED]: 'connection refused',
  [FailureReason.UNREACHABLE]: 'unreachable',
  [FailureReason.CONNECTION_RESET]: 'connection reset',
  [FailureReason.CERTIFICATE_INVALID]: 'invalid certificate',
  [FailureReason.TLS_FAILED]: 'TLS failed',
  [FailureReason.PROTOCOL_ERROR]: 'response was not HTTP, or its head was too long',
  [FailureReason.NETWORK_ERROR]: 'network error',
  [FailureReason.RESPONSE_TOO_LARGE]: 'response was larger than 64 KiB',
}

const phases: Partial<Record<AttemptPhase, string>> = {
  [AttemptPhase.RESOLVE]: 'during DNS lookup',
  [AttemptPhase.CONNECT]: 'while connecting',
  [AttemptPhase.TLS]: 'during the TLS handshake',
  [AttemptPhase.HEADERS]: 'while waiting for the response',
  [AttemptPhase.BODY]: 'while reading the response',
}

/** Returns the outcome of an attempt as one line of text. */
export function outcomeText({
  responseClass,
  responseStatus,
  failureReason,
  failurePhase,
}: Pick<DeliveryAttempt, 'responseClass' | 'responseStatus' | 'failureReason' | 'failurePhase'>): string {
  const parts = [
    classes[responseClass],
    responseStatus !== undefined && `HTTP ${responseStatus}`,
    reasons[failureReason],
    phases[failurePhase],
  ].filter(Boolean)
  return parts.join(', ')
}

export const isRetryable = (status: DeliveryStatus) =>
  [DeliveryStatus.RETRY_SCHEDULED, DeliveryStatus.FAILED, DeliveryStatus.DEAD_LETTERED].includes(status)
