import type { DeliveryHoldStore } from './delivery-hold-store.ts'
import type { LeadSubscriptionStore } from './lead-subscription-store.ts'

export interface DeliveryHolds {
  /** Holds the deliveries of a disabled subscription. */
  hold(subscriptionId: string): Promise<void>
  /**
   * Holds or releases deliveries according to the subscription's status. Repeats while other calls
   * change the status.
   */
  applyStatus(subscriptionId: string): Promise<void>
  /** Makes deliveries match the status of their subscriptions after a crash or a race. */
  reconcile(): Promise<void>
  heldCounts(subscriptionIds: string[]): Promise<Map<string, number>>
}

/** Paces held deliveries to an enabled destination: this interval each, all within the maximum. */
const spreadPerDeliveryMs = 10
const spreadMaxMs = 30_000

export function createDeliveryHolds(dependencies: {
  store: DeliveryHoldStore
  subscriptions: Pick<LeadSubscriptionStore, 'find'>
  /** Wakes waiting workers. */
  announce: () => void
  now: () => number
}): DeliveryHolds {
  const { store, subscriptions, announce, now } = dependencies

  async function release(subscriptionId: string) {
    const held = (await store.heldCounts([subscriptionId])).get(subscriptionId) ?? 0
    if (held === 0) return
    const spread = Math.min((held - 1) * spreadPerDeliveryMs, spreadMaxMs)
    await store.release(subscriptionId, new Date(now()), spread)
    announce()
  }

  async function withStatus(subscriptionIds: string[], status: 'enabled' | 'disabled') {
    if (subscriptionIds.length === 0) return []
    const found = await subscriptions.find(subscriptionIds)
    return found.filter((subscription) => subscription.status === status)
  }

  const hold = (subscriptionId: string) => store.hold(subscriptionId, new Date(now()))

  return {
    hold,

    async applyStatus(subscriptionId) {
      for (let applied: string | undefined; ; ) {
        const [subscription] = await subscriptions.find([subscriptionId])
        if (!subscription || subscription.status === applied) return
        applied = subscription.status
        await (applied === 'disabled' ? hold : release)(subscriptionId)
      }
    },

    heldCounts: store.heldCounts,

    async reconcile() {
      for (const { subscriptionId } of await withStatus(await store.waiting(), 'disabled')) await hold(subscriptionId)
      for (const { subscriptionId } of await withStatus(await store.holding(), 'enabled')) await release(subscriptionId)
    },
  }
}
