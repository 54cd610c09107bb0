import { type Subscription, SubscriptionPurpose, type SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { allPages } from '../../../contract/all-pages.ts'
import type { Api } from '../api.ts'
import { useConsole } from '../console-context.ts'
import { useLoad } from '../ui/load.tsx'

export interface Destination {
  subscriptionId: string
  destinationUrl: string
  name: string
  status: SubscriptionStatus
  isHook: boolean
}

export interface SubscriptionPart {
  subscription: Subscription
  onChanged: () => Promise<void>
}

/** Returns the lead subscriptions and, apart from them, the event hooks of the workspace. */
export async function listSubscriptions(api: Api) {
  const [subscriptions, hooks] = await Promise.all([
    allPages((pageToken) => api.leads.listSubscriptions({ pageToken })),
    allPages((pageToken) => api.hooks.listHooks({ pageToken })),
  ])
  return {
    subscriptions: subscriptions
      .flatMap((page) => page.subscriptions)
      .filter(({ purpose }) => purpose !== SubscriptionPurpose.OPERATIONAL_EVENTS),
    hooks: hooks.flatMap((page) => page.hooks),
  }
}

async function listDestinations(api: Api): Promise<Destination[]> {
  const { subscriptions, hooks } = await listSubscriptions(api)
  return [
    ...subscriptions.map((each) => ({ ...each, isHook: false })),
    ...hooks.map(({ hookId, ...each }) => ({ ...each, subscriptionId: hookId, isHook: true })),
  ]
}

/** Loads the lead subscriptions and event hooks of the workspace, which both have deliveries. */
export function useDestinations() {
  const { api } = useConsole()
  const { value: all = [] } = useLoad(() => listDestinations(api), [])
  return { all, names: new Map(all.map((each) => [each.subscriptionId, nameOf(each)])) }
}

/** Returns the name of a destination. If it has none, returns its masked URL. */
export const nameOf = ({ name, destinationUrl }: Pick<Destination, 'name' | 'destinationUrl'>) => name || destinationUrl
