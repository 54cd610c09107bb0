import type { AttemptFacts, ResponseClass } from './model.ts'

/**
 * A fault of the subscription itself that an answer indicates, for example rejected credentials. It
 * affects all deliveries of the subscription.
 */
export type SubscriptionFault = 'rejected_auth' | 'gone' | 'not_found'

interface Classification {
  responseClass: ResponseClass
  /** Whether the delivery may be retried automatically. */
  retryable: boolean
  /**
   * Delay in milliseconds from the destination's `Retry-After`. Set only for the statuses 429 and
   * 503.
   */
  retryAfterMs?: number
  fault?: SubscriptionFault
}

/** Classifies an attempt by the table of outcomes (contract, section 5). */
export function classify(facts: AttemptFacts): Classification {
  if ('reason' in facts) {
    if (facts.reason === 'destination_blocked') return { responseClass: 'destination_blocked', retryable: false }
    return { responseClass: facts.reason === 'timeout' ? 'timeout' : 'network_error', retryable: true }
  }
  const { status, retryAfterMs } = facts
  const asked = retryAfterMs === undefined ? {} : { retryAfterMs }
  // An informational status is not a final answer.
  if (status < 200) return { responseClass: 'network_error', retryable: true }
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

const second = 1000
const minute = 60 * second
const hour = 60 * minute

/**
 * Retry delays in milliseconds: the first follows the first attempt, the second follows the second
 * attempt, and so on (contract, section 5).
 */
const retryDelaysMs: readonly number[] = [
  5 * second,
  30 * second,
  2 * minute,
  10 * minute,
  30 * minute,
  2 * hour,
  6 * hour,
  12 * hour,
]

/** Maximum delay that a destination's `Retry-After` can set, in milliseconds. */
const retryAfterMaxMs = hour

/**
 * A delay is lengthened at random by up to this fraction. It is never shortened, so that
 * `Retry-After` is honoured.
 */
const jitter = 0.2

/**
 * Returns the delay in milliseconds between the end of an attempt and the next attempt; undefined
 * after the last attempt. A manual attempt counts like the automatic attempt that it replaces.
 */
export function retryDelay(
  attemptNumber: number,
  { retryAfterMs = 0, random }: { retryAfterMs?: number | undefined; random: () => number },
): number | undefined {
  const scheduled = retryDelaysMs[attemptNumber - 1]
  if (scheduled === undefined) return undefined
  const least = Math.max(scheduled, Math.min(retryAfterMs, retryAfterMaxMs))
  return least + Math.floor(least * jitter * random())
}
