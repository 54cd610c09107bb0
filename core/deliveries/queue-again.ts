import type { Document } from 'mongodb'
import type { DeliveryAttempt, DeliveryOperation } from './model.ts'

/**
 * Returns the update that queues a delivery again: after a manual retry, when its subscription is
 * enabled, and in a recovery. With `attempt`, the delivery continues with this attempt, which
 * replaces the scheduled one. Without it, a held delivery continues with the attempt that it waited
 * for.
 */
export function queueAgain(again: {
  at: Date
  /** A time, or an expression that computes it. */
  dueAt: Date | Document
  attempt?: DeliveryAttempt
  /** The request that queues the delivery. */
  operation?: DeliveryOperation
  requestedAt?: Date
}): Document[] {
  const { at, dueAt, attempt, operation, requestedAt } = again
  return [
    {
      $set: {
        status: attempt ? 'pending' : { $cond: [isMissing('$next'), 'pending', 'retry_scheduled'] },
        dueAt,
        updatedAt: at,
        requestedAt,
        attempts: attempt && withLast('$attempts', attempt),
        operations: operation && withLast('$operations', operation),
      },
    },
    { $unset: attempt ? ['heldDueAt', 'next', 'deleteAt'] : ['heldDueAt'] },
  ]
}

/** An expression that is true if the document has no such field. */
export const isMissing = (field: string) => ({ $eq: [{ $type: field }, 'missing'] })

const withLast = (list: string, last: object) => ({ $concatArrays: [list, [{ $literal: last }]] })
