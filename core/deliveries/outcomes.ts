import type { Core } from '../core.ts'
import type { AttemptFacts, AttemptOutcome, Fault, ResponseClass } from './model.ts'

/** A destination that answers has probably received the request each time. */
export const maxUnreadableAnswers = 3

interface Classification {
  responseClass: ResponseClass
  retryable: boolean
  /** From `Retry-After`, for the statuses 429 and 503 only. */
  retryAfterMs?: number
  /** The fault of the subscription that the answer shows. */
  fault?: Fault['kind']
}

/** Classifies an attempt by the table of outcomes (contract, section 5). */
export function classify(facts: AttemptFacts): Classification {
  if ('reason' in facts) {
    switch (facts.reason) {
      case 'destination_blocked':
        return { responseClass: 'destination_blocked', retryable: false }
      case 'response_too_large':
        return { responseClass: 'rejected', retryable: false }
      case 'protocol_error':
        return { responseClass: 'unreadable_answer', retryable: true }
      default:
        return { responseClass: facts.reason === 'timeout' ? 'timeout' : 'network_error', retryable: true }
    }
  }
  const { status, retryAfterMs } = facts
  const asked = retryAfterMs === undefined ? {} : { retryAfterMs }
  // An informational status is not a final answer.
  if (status < 200) return { responseClass: 'unreadable_answer', retryable: true }
  if (status < 300) return { responseClass: 'accepted', retryable: false }
  if (status < 400) return { responseClass: 'redirected', retryable: false }
  switch (status) {
    case 400:
    case 422:
      return { responseClass: 'rejected_payload', retryable: false }
    case 401:
    case 403:
      return { responseClass: 'rejected_auth', retryable: false, fault: 'rejected_auth' }
    case 404:
      return { responseClass: 'gone', retryable: false, fault: 'not_found' }
    case 410:
      return { responseClass: 'gone', retryable: false, fault: 'gone' }
    case 408:
    case 425:
      return { responseClass: 'server_error', retryable: true }
    case 409:
      return { responseClass: 'conflict', retryable: false }
    case 429:
      return { responseClass: 'rate_limited', retryable: true, ...asked }
    case 503:
      return { responseClass: 'server_error', retryable: true, ...asked }
    default:
      return status < 500
        ? { responseClass: 'rejected', retryable: false }
        : { responseClass: 'server_error', retryable: true }
  }
}

export const suppressedOutcome: AttemptOutcome = { status: 'failed', responseClass: 'suppressed' }

export const retainedUntil = ({ config }: Pick<Core, 'config'>, at: Date): Date =>
  new Date(at.getTime() + config.DELIVERY_RETENTION_DAYS * 86_400_000)
