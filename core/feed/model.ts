import type { EventData, FeedEventType } from '../../contract/event-kinds.ts'
import type { DisabledReason, LeadSubscription } from '../deliveries/subscription-model.ts'
import { type EventType, endsSession, isCompletion, type LogEvent, type SessionEndType } from '../log-event.ts'

/** One event of a workspace's feed. Readers get its content from the source. */
export interface NewFeedEntry {
  /** Names the source. Unique in the workspace, so that an event has one entry. */
  source: string
  type: FeedEventType
  occurredAt: Date
  conversationId?: string
  /** Sequence of the event in the log; 0 for the creation of the conversation. */
  sequence?: number
  leadId?: string
  delivery?: FeedDelivery
  workflowId?: string
  disabled?: { subscriptionId: string; reason: DisabledReason }
}

export interface FeedDelivery {
  subscriptionId: string
  deliveryId: string
  attemptId: string
  outcome: 'accepted' | 'failed'
}

/** The numbers of a feed are consecutive, from 1. */
export type FeedEntry = Partial<NewFeedEntry> & { number: number; type: FeedEventType; occurredAt: Date }

/** The wake-up of cores when a feed has new entries. */
export const feedHint = (workspaceId: string) => `feed ${workspaceId}`

export const feedKeptMs = 30 * 86_400_000

/** If its source was removed, only the place of an entry stays, without `source`. */
export type FeedEntryDocument = FeedEntry & { workspaceId: string; storedAt: Date }

const types: Partial<Record<EventType, FeedEventType>> = {
  'message.accepted': 'message.visitor',
  'message.received': 'message.agent',
  'message.completed': 'message.bot',
  'message.redacted': 'message.redacted',
  'agent.assigned': 'conversation.assigned',
  'agent.unassigned': 'conversation.unassigned',
  'conversation.closed': 'conversation.closed',
  'conversation.reopened': 'conversation.reopened',
  'rating.given': 'rating.given',
  'conversation.tagged': 'conversation.tagged',
  'conversation.untagged': 'conversation.untagged',
  'message.unseen': 'message.unseen',
  'human.requested': 'human.requested',
  'bot.stopped': 'bot.stopped',
  'bot.resumed': 'bot.resumed',
  'session.identified': 'visitor.identified',
  'session.closed': 'visitor.left',
  'session.expired': 'visitor.left',
  'session.revoked': 'visitor.left',
  'visitor.banned': 'visitor.left',
  'connection.disabled': 'visitor.left',
} satisfies Partial<Record<EventType, FeedEventType>> & Record<SessionEndType, FeedEventType>

export const loggedTypes = Object.keys(types) as EventType[]

/** A growing message has its entry when it ends. */
export const isInFeed = ({ type, growth }: LogEvent) => types[type] !== undefined && !growth

export function entryOf(event: LogEvent): NewFeedEntry | undefined {
  if (!isInFeed(event)) return undefined
  const { conversationId, type, occurredAt, message, data } = event
  const sequence = isCompletion(event) ? event.messageSequence! : event.sequence
  const feedType = message?.author.kind === 'bot' ? 'message.bot' : types[type]
  return (
    feedType && {
      source: `${conversationId} ${sequence}`,
      type: feedType,
      occurredAt,
      conversationId,
      sequence,
      leadId: data?.leadId,
    }
  )
}

export const creationOf = (conversationId: string, occurredAt: Date): NewFeedEntry => ({
  source: `${conversationId} 0`,
  type: 'conversation.created',
  occurredAt,
  conversationId,
  sequence: 0,
})

const reasons: Record<SessionEndType, EventData<'visitor.left'>['reason']> = {
  'session.closed': 'closed',
  'session.expired': 'expired',
  'session.revoked': 'revoked',
  'visitor.banned': 'banned',
  'connection.disabled': 'connection_disabled',
}

export const reasonOf = ({ type }: LogEvent) => (endsSession(type) ? reasons[type] : undefined)

export const noticeEntries = ({ subscriptionId, notices = [] }: LeadSubscription): NewFeedEntry[] =>
  notices.map((notice) => {
    const { noticeId: source, at: occurredAt } = notice
    if (notice.kind === 'subscription.disabled')
      return { source, type: notice.kind, occurredAt, disabled: { subscriptionId, reason: notice.reason } }
    const { deliveryId } = notice
    const delivery: FeedDelivery = { subscriptionId, deliveryId, attemptId: '', outcome: 'failed' }
    return { source, type: 'subscription.failing', occurredAt, delivery }
  })
