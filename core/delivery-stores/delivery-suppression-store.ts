import type { Collection } from 'mongodb'
import type { DeliveryDocument } from './delivery-store.ts'
import type { AttemptOutcome } from './model.ts'
import { isMissing } from './queue-again-store.ts'

export interface DeliverySuppressionStore {
  /**
   * Ends the deliveries of these leads that are held or wait for an attempt. Returns the number of
   * ended deliveries.
   */
  end(leadIds: string[], at: Date, deleteAt: Date): Promise<number>
}

export const suppressedOutcome: AttemptOutcome = { status: 'failed', responseClass: 'suppressed' }

export function createDeliverySuppressionStore({
  deliveries,
}: {
  deliveries: Collection<DeliveryDocument>
}): DeliverySuppressionStore {
  return {
    async end(leadIds, at, deleteAt) {
      const ended = { updatedAt: at, outcome: suppressedOutcome }
      const next = {
        attemptId: '$next.attemptId',
        correlationId: '$next.correlationId',
        manual: false,
        createdAt: at,
        ...ended,
      }
      const lastId = { $arrayElemAt: ['$attempts.attemptId', -1] }
      const withLastEnded = {
        $map: {
          input: '$attempts',
          as: 'attempt',
          in: {
            $cond: [
              { $eq: ['$$attempt.attemptId', lastId] },
              { $mergeObjects: ['$$attempt', { $literal: ended }] },
              '$$attempt',
            ],
          },
        },
      }
      const { modifiedCount } = await deliveries.updateMany(
        { leadId: { $in: leadIds }, status: { $in: ['pending', 'retry_scheduled', 'held'] } },
        [
          {
            $set: {
              status: 'failed',
              attempts: { $cond: [isMissing('$next'), withLastEnded, { $concatArrays: ['$attempts', [next]] }] },
              updatedAt: at,
              deleteAt,
              unannounced: true,
            },
          },
          { $unset: ['next', 'dueAt', 'heldDueAt', 'claim', 'releasedClaimId'] },
        ],
      )
      return modifiedCount
    },
  }
}
