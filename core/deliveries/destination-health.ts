import type { Settlement } from '../delivery-stores/model.ts'
import type { LeadSubscriptionStore } from '../destinations/lead-subscription-store.ts'
import type { LiveSubscriptions } from '../destinations/live-subscriptions.ts'
import type { LeadSubscription } from '../destinations/model.ts'
import type { SubscriptionDisabling } from './delivery-holds.ts'

/** A settlement (an outcome, or a return to the queue) and the subscription of its delivery. */
export interface ResultSettlement {
  subscriptionId: string
  settlement: Settlement
}

type Ended = Extract<Settlement, { kind: 'outcome' }>

/** Tracks the successes and failures of each subscription. */
export interface DestinationHealth {
  /**
   * Handles results that were recorded at the time `at`. Stores the time of the first failure, and
   * removes it after a success. Disables a subscription if every attempt has failed for five days.
   * Resets the count of consecutive 404 answers after another answer. Repeating the call is safe.
   */
  observe(recorded: ResultSettlement[], at: Date): Promise<void>
}

/** Time in milliseconds after which a failing subscription is disabled (contract, section 5). */
export const failingMaxMs = 5 * 86_400_000

export function createDestinationHealth(dependencies: {
  subscriptions: Pick<LeadSubscriptionStore, 'resetNotFound' | 'markFailing' | 'resetFailures'>
  liveSubscriptions: Pick<LiveSubscriptions, 'find' | 'changed'>
  subscriptionDisabling: Pick<SubscriptionDisabling, 'disableFailing'>
}): DestinationHealth {
  const { subscriptions, liveSubscriptions, subscriptionDisabling } = dependencies

  async function apply(write: (ids: string[]) => Promise<void>, ids: string[]) {
    if (ids.length === 0) return
    await write(ids)
    await liveSubscriptions.changed(...ids)
  }

  return {
    async observe(recorded, at) {
      const bySubscription = new Map<string, Ended[]>()
      for (const { subscriptionId, settlement } of recorded) {
        if (settlement.kind !== 'outcome') continue
        bySubscription.set(subscriptionId, [...(bySubscription.get(subscriptionId) ?? []), settlement])
      }
      const known = await Promise.all([...bySubscription.keys()].map(liveSubscriptions.find))
      const found = known.flatMap((each) => (each ? [each.subscription] : []))
      const endedOf = ({ subscriptionId }: LeadSubscription) => bySubscription.get(subscriptionId)!
      const idsOf = (isIncluded: (subscription: LeadSubscription) => boolean) =>
        found.filter(isIncluded).map(({ subscriptionId }) => subscriptionId)

      const isAccepted = (subscription: LeadSubscription) =>
        endedOf(subscription).some(({ outcome }) => outcome.status === 'accepted')
      await apply(
        subscriptions.resetNotFound,
        idsOf((each) => each.notFound.length > 0 && endedOf(each).some(endsNotFound)),
      )
      await apply(
        subscriptions.resetFailures,
        idsOf((each) => isAccepted(each) && (each.failingSince ?? each.deadLettersSince) !== undefined),
      )
      await apply(
        (ids) => subscriptions.markFailing(ids, at),
        idsOf((each) => !isAccepted(each) && each.failingSince === undefined),
      )
      const before = new Date(at.getTime() - failingMaxMs)
      const failed = found.filter((each) => !isAccepted(each) && each.failingSince && each.failingSince <= before)
      for (const each of failed) {
        await subscriptionDisabling.disableFailing(each.subscriptionId, endedOf(each).at(-1)!.attemptId, before)
      }
    },
  }
}

/**
 * True if the result ends a series of consecutive 404 answers. Another answer that may disable the
 * subscription, such as 410, returns false, because enabling the subscription later resets the
 * count.
 */
const endsNotFound = ({ fault }: Ended) => !fault || fault.kind === 'dead_lettered'
