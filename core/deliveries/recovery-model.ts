export const recoverableStatuses = ['failed', 'dead_lettered', 'held'] as const
export type RecoverableStatus = (typeof recoverableStatuses)[number]

/** Deliveries that a recovery schedules again: those with a status, created in a period. */
export interface RecoveryRange {
  since: Date
  /** End of the period, excluded. */
  until: Date
  statuses: RecoverableStatus[]
}

/** The last recovery of a subscription. A subscription has one running recovery at most. */
export interface DeliveryRecovery extends RecoveryRange {
  recoveryId: string
  requestedAt: Date
  /** Statuses that are not searched to the end yet. The search is in the first one. */
  remaining: RecoverableStatus[]
  /** The last delivery that was found with the first remaining status. */
  after?: { createdAt: Date; id: string }
  /** Due time of the next delivery that is scheduled. */
  nextDueAt: Date
  recovered: number
  /**
   * Time at which a core may take the next step. While a step runs, it is the end of the step's
   * lease. Absent after the end.
   */
  nextStepAt?: Date
  /** Increased by each lease. A step whose lease was taken over changes nothing here. */
  fencingToken: number
  finishedAt?: Date
}
