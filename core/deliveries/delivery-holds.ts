import type { DeliveryHoldStore } from './delivery-hold-store.ts'
import type { LeadSubscriptionStore } from './lead-subscription-store.ts'

export interface DeliveryHolds {
  /** The subscription is disabled: its deliveries wait. */
  hold(subscriptionId: string): Promise<void>
  /** Holds or releases a subscription's deliveries, as its status says, until no other call has changed that meanwhile. */
  followStatus(subscriptionId: string): Promise<void>
  /** Makes deliveries agree with their subscriptions, after a crash or a race in between. */
  reconcile(): Promise<void>
  heldCounts(subscriptionIds: string[]): Promise<Map<string, number>>
}

/** A destination that comes back gets its held deliveries at this pace at most, and all of them within the longest. */
const spreadPerDeliveryMs = 10
const spreadMaxMs = 30_000

export function createDeliveryHolds(dependencies: {
  store: DeliveryHoldStore
  subscriptions: Pick<LeadSubscriptionStore, 'find'>
  /** There may be something to do. */
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

    async followStatus(subscriptionId) {
      for (let followed: string | undefined; ; ) {
        const [subscription] = await subscriptions.find([subscriptionId])
        if (!subscription || subscription.status === followed) return
        followed = subscription.status
        await (followed === 'disabled' ? hold : release)(subscriptionId)
      }
    },

    heldCounts: store.heldCounts,

    async reconcile() {
      for (const { subscriptionId } of await withStatus(await store.waiting(), 'disabled')) await hold(subscriptionId)
      for (const { subscriptionId } of await withStatus(await store.holding(), 'enabled')) await release(subscriptionId)
    },
  }
}
