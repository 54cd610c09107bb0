import type { DeliveryHoldStore } from '../store/delivery-holds.ts'
import type { LeadSubscriptionStore } from '../store/lead-subscriptions.ts'

export interface DeliveryHolds {
  /** The subscription is disabled: its deliveries wait. */
  hold(subscriptionId: string): Promise<void>
  /** The subscription is enabled again: they go on, spread a little. */
  release(subscriptionId: string): Promise<void>
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
    release,
    heldCounts: store.heldCounts,

    async reconcile() {
      for (const { subscriptionId } of await withStatus(await store.waiting(), 'disabled')) await hold(subscriptionId)
      for (const { subscriptionId } of await withStatus(await store.holding(), 'enabled')) await release(subscriptionId)
    },
  }
}
