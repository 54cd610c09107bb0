import { hashInput } from '../idempotency/idempotency.ts'
import type { DeliveryIntake } from './delivery-intake.ts'
import type { LeadSubscriptionStore } from './lead-subscription-store.ts'
import type { LeadSubscription, SubscriptionNotice } from './model.ts'
import { newDelivery, noticeContent } from './new-delivery.ts'

export interface OperationalEvents {
  /**
   * Creates the deliveries of all notices to the operational endpoints of their workspaces. A
   * notice is removed after its deliveries are stored, and repeating this creates no duplicates.
   */
  send(): Promise<void>
}

/** Adds notices of a subscription to the event feed. Can be repeated. */
export type AddNotices = (of: LeadSubscription, notices: SubscriptionNotice[]) => Promise<void>

const batch = 100

export function createOperationalEvents(dependencies: {
  subscriptions: Pick<LeadSubscriptionStore, 'withNotices' | 'removeNotices' | 'operational'>
  intake: DeliveryIntake
  addToFeed: AddNotices
  settings: { bodyMaxBytes: number; retentionDays: number }
  now: () => number
}): OperationalEvents {
  const { subscriptions, intake, addToFeed, settings, now } = dependencies

  async function sendOne(of: LeadSubscription, notice: SubscriptionNotice, endpoint: LeadSubscription) {
    const at = new Date(now())
    const key = `${of.workspaceId} operational ${notice.noticeId} ${endpoint.subscriptionId}`
    const { isTooLarge: _, ...delivery } = newDelivery({
      content: noticeContent(of, notice),
      subscription: endpoint,
      operation: { key, inputHash: hashInput({ key }) },
      at,
      settings,
    })
    await intake.add(delivery, { subscription: endpoint, readAt: at })
  }

  async function sendNotices(of: LeadSubscription) {
    const { workspaceId, notices = [], isOperational } = of
    // No events about operational endpoints are sent. Otherwise their own failures would cause
    // further events.
    const endpoints = isOperational ? [] : await subscriptions.operational(workspaceId)
    for (const notice of notices) await Promise.all(endpoints.map((endpoint) => sendOne(of, notice, endpoint)))
    await addToFeed(of, notices)
    await subscriptions.removeNotices(of.subscriptionId, notices)
  }

  return {
    async send() {
      for (;;) {
        const found = await subscriptions.withNotices(batch)
        // A subscription that fails must not block the others.
        const failures: unknown[] = []
        for (const each of found) await sendNotices(each).catch((error: unknown) => failures.push(error))
        if (failures.length > 0) throw failures[0]
        if (found.length < batch) return
      }
    },
  }
}
