// Written from contract/event-kinds.ts: `npm run make -- events`.

/** Every kind of event, and when it happens. Browsers do not need the schemas. */
export const eventList: Record<string, string> = {
  'lead.ready-for-delivery': 'a lead is delivered',
  'lead.captured': 'a lead was stored',
  'lead.delivered': 'a destination accepted a delivery of the lead',
  'lead.delivery-failed': 'a delivery of the lead ended without acceptance',
  'workflow.handoff': 'a delivery ended as the hand-off of its subscription says',
  'conversation.created': 'before the first event of a conversation',
  'conversation.assigned': 'an agent was assigned, also in place of another',
  'conversation.unassigned': 'the assigned agent was removed',
  'conversation.closed': 'an operator closed the conversation',
  'conversation.reopened': 'an operator or a new message reopened it',
  'rating.given': 'the visitor rated the closed conversation',
  'conversation.tagged': 'an operator added a tag',
  'conversation.untagged': 'an operator removed a tag',
  'message.visitor': 'a message of the visitor was accepted',
  'message.agent': 'a message of an agent was accepted',
  'message.bot': 'a message of a bot was accepted',
  'message.redacted': 'an operator withdrew a message',
  'message.unseen': 'no device of the visitor has shown an answer for the time that the website sets',
  'human.requested': 'a bot or the visitor asked for a person, and bots are stopped',
  'bot.stopped': 'an operator stopped the bots of the conversation',
  'bot.resumed': 'an operator gave the conversation back to its bot',
  'visitor.identified': 'the visitor became a verified visitor',
  'visitor.left': 'a session with an open stream ended, and no other session continues it',
  'subscription.disabled': 'a subscription was disabled',
  'subscription.failing': 'the first dead letter of a subscription since its last success',
}

/** Events that lead subscriptions can have. */
export const leadEventTypes: string[] = [
  'lead.ready-for-delivery',
  'lead.captured',
  'lead.delivered',
  'lead.delivery-failed',
  'message.unseen',
]
