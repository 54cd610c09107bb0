import { type DeliveryEventType, type FeedEventType, feedEvents } from '../../contract/event-kinds.ts'
import type { FieldMapping } from '../../contract/lead-fields.ts'
import type { Lead } from '../leads/model.ts'

/** Sources of leads: each form, and all services together. */
export const leadSources = ['pre-chat-form', 'offline-form', 'services'] as const
type LeadSource = (typeof leadSources)[number]

/** What is sent to a destination by itself. A requested delivery is always sent. */
export interface EventPolicy {
  types: DeliveryEventType[]
  /** Sources of the leads. Empty for all. */
  sources: LeadSource[]
  /** Public site keys of the installations. Empty for all, and for leads without an installation. */
  installations: string[]
}

/** The policy of subscriptions without one. */
export const defaultPolicy: EventPolicy = { types: ['lead.ready-for-delivery'], sources: [], installations: [] }

/** What a destination receives. */
export interface Receives extends FieldMapping {
  /** Set for an event hook, which is a resource apart from lead subscriptions. */
  resource?: 'hook'
  /** True if captured leads are sent by themselves, as `lead.ready-for-delivery`. */
  automatic: boolean
  policy?: EventPolicy
  /**
   * Names under which a hook sends events. Endpoints for operational events, which came before hooks,
   * keep the name that they know.
   */
  sentAs?: Partial<Record<FeedEventType, FeedEventType>>
  /** Number of the last feed entry whose deliveries exist. Absent if no event of the feed is sent. */
  followedTo?: number
}

/** What endpoints for operational events receive. */
export const operationalEvents: Pick<Receives, 'policy' | 'sentAs'> = {
  policy: { ...defaultPolicy, types: ['subscription.disabled', 'subscription.failing'] },
  sentAs: { 'subscription.failing': 'lead.delivery-failed' },
}

export const isHook = ({ resource }: Pick<Receives, 'resource'>): boolean => resource === 'hook'

const isOfFeed = (type: DeliveryEventType): type is FeedEventType => Object.hasOwn(feedEvents, type)

/** Whether a policy has events that come from the feed. */
export const followsFeed = ({ types }: EventPolicy): boolean => types.some(isOfFeed)

/** Whether the policy covers a lead. */
export function coversLead(
  { sources, installations }: EventPolicy,
  { source, formSubmissionId, publicSiteKey }: Pick<Lead, 'source' | 'formSubmissionId' | 'publicSiteKey'>,
): boolean {
  const from = formSubmissionId === undefined ? 'services' : source
  return (
    (sources.length === 0 || sources.some((each) => each === from)) &&
    (installations.length === 0 || (publicSiteKey !== undefined && installations.includes(publicSiteKey)))
  )
}
