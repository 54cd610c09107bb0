import { setTimeout as delay } from 'node:timers/promises'
import type { DeliveryQueue, TakenDelivery } from '../delivery-stores/delivery-queue-store.ts'
import type { DeliveriesOf, DeliverySourceStore } from '../delivery-stores/delivery-source-store.ts'
import type { LogEvent } from '../log-event.ts'
import type { Wakeups } from '../wakeups/wakeups.ts'
import { withoutText } from './new-delivery.ts'

type Carrying = Pick<TakenDelivery, 'deliveryId' | 'leadId' | 'conversationId' | 'messageSequence'> & {
  body?: Uint8Array
}

/** Time in milliseconds after which a held delivery of an erased visitor is looked at again. */
const heldMs = 30_000
/** Maximum time in milliseconds that a removal waits for the workers. Later attempts end on their own. */
const recallMs = 1_000
const recallCheckMs = 20

/**
 * Keeps what was removed from leaving in a delivery. Each delivery is checked after its claim was
 * stored, and a removal looks for deliveries after it was stored. So one of the two finds the other.
 */
export function createDeliverySources(dependencies: {
  store: DeliverySourceStore
  queue: Pick<DeliveryQueue, 'releaseClaim'>
  wakeups: Pick<Wakeups, 'stateChanged'>
}) {
  const { store, queue, wakeups } = dependencies

  /**
   * Makes the workers return the deliveries that they have not begun to send, and waits until they
   * have none of them. Does not wait longer for attempts that run.
   */
  async function recall(of: DeliveriesOf): Promise<void> {
    const handed = await store.handed(of)
    if (handed.length === 0) return
    const until = performance.now() + recallMs
    await wakeups.stateChanged(...new Set(handed.map(({ subscriptionId }) => subscriptionId)))
    while (performance.now() < until && (await store.isHanded(handed))) await delay(recallCheckMs)
  }

  return {
    recall,

    /** Removes the texts of withdrawn messages from all deliveries that carry them. */
    async withdraw(redactions: LogEvent[]): Promise<void> {
      for (const { conversationId, messageSequence = 0, occurredAt } of redactions) {
        const of = { conversationId, messageSequence }
        await store.withdraw(of, occurredAt, withoutText)
        await recall(of)
      }
    },

    /**
     * Returns the stored deliveries as they may be sent: without withdrawn texts, which are also removed
     * from the stored bodies. Leaves out deliveries of removed data and of erased visitors, and puts
     * them back if they are claimed. The removal deletes them.
     */
    async sendable<D extends Carrying>(found: D[], claimId: string | undefined, at: Date): Promise<D[]> {
      const { removed, withdrawn } = await store.statesOf(found)
      if (claimId !== undefined && removed.size > 0)
        await queue.releaseClaim([...removed], claimId, at, new Date(at.getTime() + heldMs))
      const left = found.filter(({ deliveryId }) => !removed.has(deliveryId))
      return Promise.all(
        left.map(async (delivery) => {
          const { deliveryId, conversationId = '', messageSequence = 0, body } = delivery
          const redactedAt = withdrawn.get(deliveryId)
          if (!redactedAt || !body) return delivery
          await store.withdraw({ conversationId, messageSequence }, redactedAt, withoutText)
          return { ...delivery, body: withoutText(body, redactedAt) }
        }),
      )
    },
  }
}

export type DeliverySources = ReturnType<typeof createDeliverySources>
