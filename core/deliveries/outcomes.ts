import type { Core } from '../core.ts'
import type { AttemptFacts, AttemptOutcome, FailureReason, Fault, ResponseClass } from './model.ts'

/** A destination that answers has probably received the request each time. */
export const maxUnreadableAnswers = 3

const failures: Partial<Record<FailureReason, ResponseClass>> = {
  destination_blocked: 'destination_blocked',
  response_too_large: 'rejected',
  protocol_error: 'unreadable_answer',
  timeout: 'timeout',
}

/** Statuses with a class of their own, and the fault of the subscription that they show. */
const statuses: Record<number, [ResponseClass, Fault['kind']?]> = {
  400: ['rejected_payload'],
  401: ['rejected_auth', 'rejected_auth'],
  403: ['rejected_auth', 'rejected_auth'],
  404: ['gone', 'not_found'],
  408: ['server_error'],
  409: ['conflict'],
  410: ['gone', 'gone'],
  422: ['rejected_payload'],
  425: ['server_error'],
  429: ['rate_limited'],
}
/** The classes of 1xx, which is not a final answer, to 5xx. */
const hundreds: ResponseClass[] = ['unreadable_answer', 'accepted', 'redirected', 'rejected', 'server_error']

/** Classes of attempts that may be repeated automatically. */
const retried: ResponseClass[] = ['unreadable_answer', 'server_error', 'rate_limited', 'timeout', 'network_error']

/**
 * Classifies an attempt by the table of outcomes (contract, section 5). The `Retry-After` of a destination
 * counts for the statuses 429 and 503 only.
 */
export function classify(facts: AttemptFacts) {
  const [responseClass, fault] =
    'reason' in facts
      ? [failures[facts.reason] ?? 'network_error']
      : (statuses[facts.status] ?? [hundreds[Math.floor(facts.status / 100) - 1] ?? 'server_error'])
  const isAsked = 'status' in facts && (facts.status === 429 || facts.status === 503)
  return {
    responseClass,
    retryable: retried.includes(responseClass),
    ...(fault && { fault }),
    ...(isAsked && facts.retryAfterMs !== undefined && { retryAfterMs: facts.retryAfterMs }),
  }
}

export const suppressedOutcome: AttemptOutcome = { status: 'failed', responseClass: 'suppressed' }

/** A delivery that ends at `at` is kept until this time. */
export const retainedUntil = ({ config }: Pick<Core, 'config'>, at: Date): Date =>
  new Date(at.getTime() + config.DELIVERY_RETENTION_DAYS * 86_400_000)
