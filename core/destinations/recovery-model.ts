import type { DeliveryEventType } from '../../contract/event-kinds.ts'

export const recoverableStatuses = ['failed', 'dead_lettered', 'held'] as const
export type RecoverableStatus = (typeof recoverableStatuses)[number]

/**
 * Selects the deliveries that a recovery schedules again, by their status, event and the time of
 * their creation.
 */
export interface RecoveryRange {
  since: Date
  /** End of the period. A delivery that was created at exactly this time is not included. */
  until: Date
  statuses: RecoverableStatus[]
  /** Absent for all. */
  eventTypes?: DeliveryEventType[]
}

/** The last recovery of a subscription. A subscription has one running recovery at most. */
export interface DeliveryRecovery extends RecoveryRange {
  recoveryId: string
  requestedAt: Date
  /**
   * Statuses that the recovery has not searched completely. The recovery currently searches for
   * deliveries with the first status of the list.
   */
  remaining: RecoverableStatus[]
  /**
   * The last delivery that was found with the first remaining status. The search continues after
   * it.
   */
  after?: { createdAt: Date; id: string }
  /** Due time of the next delivery that the recovery schedules. */
  nextDueAt: Date
  recovered: number
  /**
   * Time at which a core may take the next step. While a step runs, it is the end of the step's
   * lease. Absent after the recovery has ended.
   */
  nextStepAt?: Date
  /** Token of the lease. A core whose lease was taken over has another one and cannot change the recovery. */
  fencingToken: number
  finishedAt?: Date
}
