import type { EventData, FeedEventType } from './event-kinds.ts'

/** What is known of an event. The data of its kind has some of it. */
export interface EventFacts {
  conversationId?: string | undefined
  sequence?: number | undefined
  messageId?: string | undefined
  body?: string | undefined
  redactedAt?: Date | undefined
  /** Of the author or of the assigned agent. */
  displayName?: string | undefined
  sentAt?: string | undefined
  sessionId?: string | undefined
  leftReason?: EventData<'visitor.left'>['reason'] | undefined
  tag?: string | undefined
  score?: number | undefined
  comment?: string | undefined
  leadId?: string | undefined
  subscriptionId?: string | undefined
  deliveryId?: string | undefined
  workflowId?: string | undefined
  outcome?: EventData<'workflow.handoff'>['outcome'] | undefined
  disabledReason?: EventData<'subscription.disabled'>['reason'] | undefined
}

const ofConversation = ({ conversationId = '' }: EventFacts) => ({ reference: conversationId, conversationId })

const ofTag = (facts: EventFacts) => ({ ...ofConversation(facts), tag: facts.tag ?? '' })

function ofMessage(facts: EventFacts) {
  const { conversationId = '', sequence = 0, messageId = '', body = '', displayName, redactedAt } = facts
  return {
    ...{ reference: messageId, messageId, conversationId, sequence, body },
    ...(displayName && { displayName }),
    ...(redactedAt && { redactedAt: redactedAt.toISOString() }),
  }
}

const ofSession = ({ sessionId = '', conversationId = '' }: EventFacts) => ({
  reference: sessionId,
  sessionId,
  conversationId,
})

function ofDelivery({ subscriptionId = '', deliveryId = '', leadId }: EventFacts) {
  return { reference: deliveryId, subscriptionId, deliveryId, ...(leadId && { leadId }) }
}

const data: { [Type in FeedEventType]: (facts: EventFacts) => EventData<Type> } = {
  'lead.captured': ({ leadId = '' }) => ({ reference: leadId }),
  'lead.delivered': ofDelivery,
  'lead.delivery-failed': ofDelivery,
  'workflow.handoff': (facts) => {
    const { workflowId = '', leadId = '', outcome = 'failed' } = facts
    return { ...ofDelivery(facts), workflowId, leadId, outcome }
  },
  'conversation.created': ofConversation,
  'conversation.assigned': (facts) => ({ ...ofConversation(facts), displayName: facts.displayName ?? '' }),
  'conversation.unassigned': ofConversation,
  'conversation.closed': ofConversation,
  'conversation.reopened': ofConversation,
  'rating.given': (facts) => {
    const { score = 0, comment } = facts
    return { ...ofConversation(facts), score, ...(comment !== undefined && { comment }) }
  },
  'conversation.tagged': ofTag,
  'conversation.untagged': ofTag,
  'message.visitor': ofMessage,
  'message.agent': ofMessage,
  'message.bot': ofMessage,
  'message.unseen': (facts) => {
    const { messageId = '', sentAt = '' } = facts
    return { ...ofConversation(facts), reference: messageId, messageId, sentAt }
  },
  'message.redacted': (facts) => {
    const { messageId = '' } = facts
    return { ...ofConversation(facts), reference: messageId, messageId }
  },
  'human.requested': ofConversation,
  'bot.stopped': ofConversation,
  'bot.resumed': ofConversation,
  'visitor.identified': ofSession,
  'visitor.left': (facts) => ({ ...ofSession(facts), reason: facts.leftReason ?? 'closed' }),
  'subscription.disabled': ({ subscriptionId = '', disabledReason = 'operator' }) => ({
    reference: subscriptionId,
    subscriptionId,
    reason: disabledReason,
  }),
  'subscription.failing': ({ subscriptionId = '', deliveryId = '' }) => ({
    reference: subscriptionId,
    subscriptionId,
    deliveryId,
  }),
}

/** As destinations get it. An unknown fact is an empty text. The caller adds fields of leads. */
export const eventData = <Type extends FeedEventType>(type: Type, facts: EventFacts): EventData<Type> =>
  data[type](facts)
