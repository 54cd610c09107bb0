import { DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'

/** Returns what a delivery waits for, or undefined if it has ended. A retry that is due waits for a worker. */
export function waitOf(status: DeliveryStatus, dueAt = 0, now = 0) {
  switch (status) {
    case DeliveryStatus.PENDING:
      return 'worker'
    case DeliveryStatus.SENDING:
      return 'answer'
    case DeliveryStatus.RETRY_SCHEDULED:
      return dueAt > now ? 'retry' : 'worker'
    case DeliveryStatus.HELD:
      return 'destination'
    default:
      return undefined
  }
}
