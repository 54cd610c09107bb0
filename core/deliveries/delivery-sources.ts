import { setTimeout as delay } from 'node:timers/promises'
import { createLruCache } from '../../platform/lru-cache.ts'
import type { Bus } from '../bus.ts'
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
/**
 * Time in milliseconds for which changed ids are remembered. It is longer than the time between the
 * read of what a new delivery carries and the write of the delivery.
 */
const rememberedMs = 30_000
const maxRemembered = 10_000
/** Maximum time in milliseconds that a removal waits for the workers. Later attempts end on their own. */
const recallMs = 1_000
const recallCheckMs = 20

/**
 * Keeps what was removed from leaving in a delivery. Each delivery is checked after its claim was
 * stored, and a removal looks for deliveries after it was stored. So one of the two finds the other.
 *
 * A new delivery was read from its source a moment ago. It is checked only if a change of the source
 * may have arrived since, because a removal looks for deliveries after every core knows of it.
 */
export function createDeliverySources(dependencies: {
  store: DeliverySourceStore
  queue: Pick<DeliveryQueue, 'releaseClaim'>
  wakeups: Pick<Wakeups, 'stateChanged' | 'maySend'>
  bus: Bus
}) {
  const { store, queue, wakeups, bus } = dependencies
  /** Ids that changed lately, with the time until which they are remembered. */
  const changed = createLruCache<number>(maxRemembered)
  let unknownUntil = Number.NEGATIVE_INFINITY
  const later = () => performance.now() + rememberedMs
  bus.on('changed', (ids) => {
    for (const id of ids) changed.set(id, later())
  })
  bus.on('gap', () => {
    unknownUntil = later()
  })

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

    /** Whether a change of one of these sources may have arrived after a new delivery was read from it. */
    mayHaveChanged(ids: (string | undefined)[]): boolean {
      const at = performance.now()
      return (
        !wakeups.maySend() || at < unknownUntil || ids.some((id) => id !== undefined && at < (changed.get(id) ?? 0))
      )
    },

    /** Removes the texts of withdrawn messages from all deliveries that carry them. */
    async withdraw(redactions: LogEvent[]): Promise<void> {
      for (const { conversationId, messageSequence = 0, occurredAt } of redactions) {
        const of = { conversationId, messageSequence }
        await wakeups.stateChanged(conversationId)
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
