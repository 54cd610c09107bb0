import {
  AttemptPhase,
  type DeliveryAttempt,
  DeliveryStatus,
  FailureReason,
  ResponseClass,
} from '#proto/lead/v1/delivery_pb.js'

interface Word {
  /** As the public API writes it. */
  name: string
  text: string
  tone: 'ok' | 'info' | 'warn' | 'bad'
}

export const deliveryStatuses: ReadonlyMap<DeliveryStatus, Word> = new Map<DeliveryStatus, Word>([
  [DeliveryStatus.PENDING, { name: 'pending', text: 'Pending', tone: 'info' }],
  [DeliveryStatus.SENDING, { name: 'sending', text: 'Sending', tone: 'info' }],
  [DeliveryStatus.RETRY_SCHEDULED, { name: 'retry_scheduled', text: 'Will be retried', tone: 'warn' }],
  [DeliveryStatus.HELD, { name: 'held', text: 'Held', tone: 'warn' }],
  [DeliveryStatus.ACCEPTED, { name: 'accepted', text: 'Accepted', tone: 'ok' }],
  [DeliveryStatus.FAILED, { name: 'failed', text: 'Failed', tone: 'bad' }],
  [DeliveryStatus.DEAD_LETTERED, { name: 'dead_lettered', text: 'Dead letter', tone: 'bad' }],
])

export const statusByName = (name: string | undefined): DeliveryStatus | undefined =>
  [...deliveryStatuses].find(([, word]) => word.name === name)?.[0]

const classes: Partial<Record<ResponseClass, string>> = {
  [ResponseClass.ACCEPTED]: 'Accepted for transport',
  [ResponseClass.REJECTED_PAYLOAD]: 'Payload rejected',
  [ResponseClass.REJECTED_AUTH]: 'Signature or access rejected',
  [ResponseClass.GONE]: 'Destination is gone',
  [ResponseClass.CONFLICT]: 'Conflict',
  [ResponseClass.REDIRECTED]: 'Redirected, which is never followed',
  [ResponseClass.REJECTED]: 'Rejected',
  [ResponseClass.RATE_LIMITED]: 'Rate limited',
  [ResponseClass.SERVER_ERROR]: 'Server error',
  [ResponseClass.TIMEOUT]: 'No answer in time',
  [ResponseClass.NETWORK_ERROR]: 'Network error',
  [ResponseClass.DESTINATION_BLOCKED]: 'Destination not allowed',
}

const reasons: Partial<Record<FailureReason, string>> = {
  [FailureReason.TIMEOUT]: 'time ran out',
  [FailureReason.DESTINATION_BLOCKED]: 'the address is not allowed',
  [FailureReason.NAME_NOT_FOUND]: 'the name does not exist',
  [FailureReason.NAME_SERVICE_FAILED]: 'the name service did not answer',
  [FailureReason.CONNECTION_REFUSED]: 'connection refused',
  [FailureReason.UNREACHABLE]: 'unreachable',
  [FailureReason.CONNECTION_RESET]: 'connection reset',
  [FailureReason.CERTIFICATE_INVALID]: 'the certificate is not valid',
  [FailureReason.TLS_FAILED]: 'TLS failed',
  [FailureReason.PROTOCOL_ERROR]: 'the answer was no HTTP',
  [FailureReason.NETWORK_ERROR]: 'the network failed',
}

const phases: Partial<Record<AttemptPhase, string>> = {
  [AttemptPhase.RESOLVE]: 'while looking up the name',
  [AttemptPhase.CONNECT]: 'while connecting',
  [AttemptPhase.TLS]: 'while securing the connection',
  [AttemptPhase.HEADERS]: 'while waiting for the answer',
  [AttemptPhase.BODY]: 'while reading the answer',
}

/** What came of an attempt, in one line. */
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

/** An attempt of this delivery may be asked for: it is neither on its way nor done, nor held by its subscription. */
export const isRetryable = (status: DeliveryStatus) =>
  [DeliveryStatus.RETRY_SCHEDULED, DeliveryStatus.FAILED, DeliveryStatus.DEAD_LETTERED].includes(status)

export const isOnItsWay = (status: DeliveryStatus) =>
  [DeliveryStatus.PENDING, DeliveryStatus.SENDING, DeliveryStatus.RETRY_SCHEDULED].includes(status)
