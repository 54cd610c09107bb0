// Written by `npm run make -- events` from contract/event-kinds.ts.

/** The data of each kind of event. Later versions of the service add kinds and fields. */
export interface EventData {
  /** Sent when a lead is delivered. */
  'lead.ready-for-delivery': {
    /** The lead. */
    reference: string
    [field: string]: string
  }
  /** Sent when a lead was stored. */
  'lead.captured': {
    /** The lead. */
    reference: string
    [field: string]: string
  }
  /** Sent when a destination accepted a delivery of the lead. */
  'lead.delivered': {
    /** The delivery. */
    reference: string
    subscriptionId: string
    deliveryId: string
    leadId?: string
  }
  /** Sent when a delivery of the lead ended without acceptance. */
  'lead.delivery-failed': {
    /** The delivery. */
    reference: string
    subscriptionId: string
    deliveryId: string
    leadId?: string
  }
  /** Sent when a delivery ended as the hand-off of its subscription says. */
  'workflow.handoff': {
    /** The delivery. */
    reference: string
    workflowId: string
    subscriptionId: string
    deliveryId: string
    leadId: string
    outcome: 'accepted' | 'failed'
  }
  /** Sent when before the first event of a conversation. */
  'conversation.created': {
    /** The conversation. */
    reference: string
    conversationId: string
  }
  /** Sent when an agent was assigned, also in place of another. */
  'conversation.assigned': {
    /** The conversation. */
    reference: string
    conversationId: string
    /** Of the agent. */
    displayName: string
  }
  /** Sent when the assigned agent was removed. */
  'conversation.unassigned': {
    /** The conversation. */
    reference: string
    conversationId: string
  }
  /** Sent when an operator closed the conversation. */
  'conversation.closed': {
    /** The conversation. */
    reference: string
    conversationId: string
  }
  /** Sent when an operator or a new message reopened it. */
  'conversation.reopened': {
    /** The conversation. */
    reference: string
    conversationId: string
  }
  /** Sent when the visitor rated the closed conversation. */
  'rating.given': {
    /** The conversation. */
    reference: string
    conversationId: string
    /** 1 to 5; 5 is the best. */
    score: number
    comment?: string
  }
  /** Sent when an operator added a tag. */
  'conversation.tagged': {
    /** The conversation. */
    reference: string
    conversationId: string
    tag: string
  }
  /** Sent when an operator removed a tag. */
  'conversation.untagged': {
    /** The conversation. */
    reference: string
    conversationId: string
    tag: string
  }
  /** Sent when a message of the visitor was accepted. */
  'message.visitor': {
    /** The message. */
    reference: string
    messageId: string
    conversationId: string
    sequence: number
    body: string
    /** Of the author. */
    displayName?: string
    /** Set if the message was withdrawn; `body` is then empty. */
    redactedAt?: string
  }
  /** Sent when a message of an agent was accepted. */
  'message.agent': {
    /** The message. */
    reference: string
    messageId: string
    conversationId: string
    sequence: number
    body: string
    /** Of the author. */
    displayName?: string
    /** Set if the message was withdrawn; `body` is then empty. */
    redactedAt?: string
  }
  /** Sent when a message of a bot was accepted. */
  'message.bot': {
    /** The message. */
    reference: string
    messageId: string
    conversationId: string
    sequence: number
    body: string
    /** Of the author. */
    displayName?: string
    /** Set if the message was withdrawn; `body` is then empty. */
    redactedAt?: string
  }
  /** Sent when an operator withdrew a message. */
  'message.redacted': {
    /** The message. */
    reference: string
    conversationId: string
    messageId: string
  }
  /** Sent when no device of the visitor has shown an answer for the time that the website sets. */
  'message.unseen': {
    /** The message. */
    reference: string
    conversationId: string
    messageId: string
    sentAt: string
    [field: string]: string
  }
  /** Sent when a bot or the visitor asked for a person, and bots are stopped. */
  'human.requested': {
    /** The conversation. */
    reference: string
    conversationId: string
  }
  /** Sent when an operator stopped the bots of the conversation. */
  'bot.stopped': {
    /** The conversation. */
    reference: string
    conversationId: string
  }
  /** Sent when an operator gave the conversation back to its bot. */
  'bot.resumed': {
    /** The conversation. */
    reference: string
    conversationId: string
  }
  /** Sent when the visitor became a verified visitor. */
  'visitor.identified': {
    /** The session. */
    reference: string
    sessionId: string
    conversationId: string
  }
  /** Sent when a session with an open stream ended, and no other session continues it. */
  'visitor.left': {
    /** The session. */
    reference: string
    sessionId: string
    conversationId: string
    reason: 'closed' | 'expired' | 'revoked' | 'banned' | 'connection_disabled'
  }
  /** Sent when a subscription was disabled. */
  'subscription.disabled': {
    /** The subscription. */
    reference: string
    subscriptionId: string
    reason: 'operator' | 'rejected_auth' | 'gone' | 'failing'
  }
  /** Sent when the first dead letter of a subscription since its last success. */
  'subscription.failing': {
    /** The subscription. */
    reference: string
    subscriptionId: string
    deliveryId: string
  }
}

/** The version of each kind that this package knows. */
export const knownVersions: Record<keyof EventData, string> = {
  'lead.ready-for-delivery': '1.0',
  'lead.captured': '1.0',
  'lead.delivered': '1.0',
  'lead.delivery-failed': '1.0',
  'workflow.handoff': '1.0',
  'conversation.created': '1.0',
  'conversation.assigned': '1.0',
  'conversation.unassigned': '1.0',
  'conversation.closed': '1.0',
  'conversation.reopened': '1.0',
  'rating.given': '1.0',
  'conversation.tagged': '1.0',
  'conversation.untagged': '1.0',
  'message.visitor': '1.0',
  'message.agent': '1.0',
  'message.bot': '1.0',
  'message.redacted': '1.0',
  'message.unseen': '1.0',
  'human.requested': '1.0',
  'bot.stopped': '1.0',
  'bot.resumed': '1.0',
  'visitor.identified': '1.0',
  'visitor.left': '1.0',
  'subscription.disabled': '1.0',
  'subscription.failing': '1.0',
}
