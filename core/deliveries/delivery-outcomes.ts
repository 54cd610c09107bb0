import type { AttemptFacts, ResponseClass } from './delivery-states.ts'

/** What an answer says of the subscription itself, besides the one delivery. */
export type Verdict = 'rejected_auth' | 'gone' | 'not_found'

export interface Classification {
  responseClass: ResponseClass
  /** Whether the same request may be sent again by itself. */
  retryable: boolean
  /** What the destination asked to be waited, in milliseconds, where it counts. */
  retryAfterMs?: number
  verdict?: Verdict
}

/** The table of outcomes (contract, section 5). */
export function classify(facts: AttemptFacts): Classification {
  if ('reason' in facts) {
    if (facts.reason === 'destination_blocked') return { responseClass: 'destination_blocked', retryable: false }
    return { responseClass: facts.reason === 'timeout' ? 'timeout' : 'network_error', retryable: true }
  }
  const { status, retryAfterMs } = facts
  const asked = retryAfterMs === undefined ? {} : { retryAfterMs }
  // No final answer of HTTP, as against a refusal.
  if (status < 200) return { responseClass: 'network_error', retryable: true }
  if (status < 300) return { responseClass: 'accepted', retryable: false }
  if (status < 400) return { responseClass: 'redirected', retryable: false }
  switch (status) {
    case 400:
    case 422:
      return { responseClass: 'rejected_payload', retryable: false }
    case 401:
    case 403:
      return { responseClass: 'rejected_auth', retryable: false, verdict: 'rejected_auth' }
    case 404:
      return { responseClass: 'gone', retryable: false, verdict: 'not_found' }
    case 410:
      return { responseClass: 'gone', retryable: false, verdict: 'gone' }
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
