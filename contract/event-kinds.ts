import { type Static, type TObject, type TSchema, Type } from 'typebox'

const Text = Type.String()
const Id = (description: string) => Type.String({ description })
const OneOf = <Value extends string>(...values: Value[]) => Type.Unsafe<Value>({ type: 'string', enum: values })

/** `reference` names the resource of the event (specification, section 2.7). */
type Data = TObject<{ reference: TSchema }>

/** A kind of event, as destinations (specification, section 4.3) and the event feed have it. */
export interface EventKind<Shape extends Data = Data> {
  /** The `contractVersion` of its bodies. */
  version: string
  category: 'lead' | 'conversation' | 'visitor' | 'operational'
  scope: string
  when: string
  /** Whether `data` also has the mapped fields of the lead. */
  hasLeadFields?: true
  data: Shape
  /** The `data` of a test delivery. */
  example: Static<Shape>
}

const kindOf =
  (category: EventKind['category'], scope: string) =>
  <Shape extends Data>(definition: Pick<EventKind<Shape>, 'when' | 'hasLeadFields' | 'data'>): EventKind<Shape> => ({
    version: '1.0',
    category,
    scope,
    ...definition,
    example: exampleOf(definition.data) as Static<Shape>,
  })

/** Values of examples by the names of the fields. The example of an enum is its first value. */
const samples: Record<string, unknown> = {
  leadId: 'lead_test',
  subscriptionId: 'sub_test',
  deliveryId: 'dlv_test',
  conversationId: 'cnv_test',
  messageId: 'msg_test',
  sessionId: 'ses_test',
  workflowId: 'test',
  sequence: 1,
  body: 'Test',
  displayName: 'Test',
  tag: 'test',
  score: 5,
  sentAt: '2026-01-01T00:00:00.000Z',
}

/** The name of the field that `reference` repeats. */
export const referenceOf = ({ properties }: Data): string => {
  const { description } = properties.reference as { description?: string }
  return `${description?.slice('the '.length)}Id`
}

/** Returns an example without optional fields, except the lead of a delivery. */
function exampleOf(data: Data) {
  const required: string[] = data.required
  const present = Object.entries(data.properties).filter(([name]) => required.includes(name) || name === 'leadId')
  const sample = (name: string, { enum: values }: { enum?: unknown[] }) =>
    values?.[0] ?? samples[name === 'reference' ? referenceOf(data) : name]
  return Object.fromEntries(present.map(([name, schema]) => [name, sample(name, schema)]))
}

const leadKind = kindOf('lead', 'leads:read')
const conversationKind = kindOf('conversation', 'messages:read')
const visitorKind = kindOf('visitor', 'sessions:read')
const operationalKind = kindOf('operational', 'subscriptions:read')

const Conversation = Type.Object({ reference: Id('the conversation'), conversationId: Text })
const conversation = (when: string) => conversationKind({ when, data: Conversation })

const tag = (when: string) =>
  conversationKind({
    when,
    data: Type.Object({ ...Conversation.properties, tag: Text }),
  })

const message = (when: string) =>
  conversationKind({
    when,
    data: Type.Object({
      reference: Id('the message'),
      messageId: Text,
      conversationId: Text,
      sequence: Type.Integer(),
      body: Text,
      displayName: Type.Optional(Type.String({ description: 'of the author' })),
      redactedAt: Type.Optional(Type.String({ description: 'set if the message was withdrawn; `body` is then empty' })),
    }),
  })

const delivery = (when: string) =>
  leadKind({
    when,
    data: Type.Object({
      reference: Id('the delivery'),
      subscriptionId: Text,
      deliveryId: Text,
      leadId: Type.Optional(Text),
    }),
  })

/** Every kind of event. Destinations receive all of them; the event feed has all but the first. */
export const deliveryEvents = {
  'lead.ready-for-delivery': leadKind({
    when: 'a lead is delivered',
    hasLeadFields: true,
    data: Type.Object({ reference: Id('the lead') }),
  }),
  'lead.captured': leadKind({
    when: 'a lead was stored',
    hasLeadFields: true,
    data: Type.Object({ reference: Id('the lead') }),
  }),
  'lead.delivered': delivery('a destination accepted a delivery of the lead'),
  'lead.delivery-failed': delivery('a delivery of the lead ended without acceptance'),
  'workflow.handoff': leadKind({
    when: 'a delivery ended as the hand-off of its subscription says',
    data: Type.Object({
      reference: Id('the delivery'),
      workflowId: Text,
      subscriptionId: Text,
      deliveryId: Text,
      leadId: Text,
      outcome: OneOf('accepted', 'failed'),
    }),
  }),
  'conversation.created': conversation('before the first event of a conversation'),
  'conversation.assigned': conversationKind({
    when: 'an agent was assigned, also in place of another',
    data: Type.Object({ ...Conversation.properties, displayName: Type.String({ description: 'of the agent' }) }),
  }),
  'conversation.unassigned': conversation('the assigned agent was removed'),
  'conversation.closed': conversation('an operator closed the conversation'),
  'conversation.reopened': conversation('an operator or a new message reopened it'),
  'rating.given': conversationKind({
    when: 'the visitor rated the closed conversation',
    data: Type.Object({
      ...Conversation.properties,
      score: Type.Integer({ description: '1 to 5; 5 is the best' }),
      comment: Type.Optional(Text),
    }),
  }),
  'conversation.tagged': tag('an operator added a tag'),
  'conversation.untagged': tag('an operator removed a tag'),
  'message.visitor': message('a message of the visitor was accepted'),
  'message.agent': message('a message of an agent was accepted'),
  'message.bot': message('a message of a bot was accepted'),
  'message.redacted': conversationKind({
    when: 'an operator withdrew a message',
    data: Type.Object({ ...Conversation.properties, reference: Id('the message'), messageId: Text }),
  }),
  'message.unseen': conversationKind({
    when: 'no device of the visitor has shown an answer for the time that the website sets',
    hasLeadFields: true,
    data: Type.Object({
      ...Conversation.properties,
      reference: Id('the message'),
      messageId: Text,
      sentAt: Text,
    }),
  }),
  'human.requested': conversation('a bot or the visitor asked for a person, and bots are stopped'),
  'bot.stopped': conversation('an operator stopped the bots of the conversation'),
  'bot.resumed': conversation('an operator gave the conversation back to its bot'),
  'visitor.identified': visitorKind({
    when: 'the visitor became a verified visitor',
    data: Type.Object({ reference: Id('the session'), sessionId: Text, conversationId: Text }),
  }),
  'visitor.left': visitorKind({
    when: 'a session with an open stream ended, and no other session continues it',
    data: Type.Object({
      reference: Id('the session'),
      sessionId: Text,
      conversationId: Text,
      reason: OneOf('closed', 'expired', 'revoked', 'banned', 'connection_disabled'),
    }),
  }),
  'subscription.disabled': operationalKind({
    when: 'a subscription was disabled',
    data: Type.Object({
      reference: Id('the subscription'),
      subscriptionId: Text,
      reason: OneOf('operator', 'rejected_auth', 'gone', 'failing'),
    }),
  }),
  'subscription.failing': operationalKind({
    when: 'the first dead letter of a subscription since its last success',
    data: Type.Object({
      reference: Id('the subscription'),
      subscriptionId: Text,
      deliveryId: Text,
    }),
  }),
}

export type DeliveryEventType = keyof typeof deliveryEvents

export type EventData<Type extends DeliveryEventType> = Static<(typeof deliveryEvents)[Type]['data']>

/** An event of any kind, with the data of its kind. */
export type DeliveryEvent = {
  [Type in DeliveryEventType]: { eventType: Type; data: EventData<Type> }
}[DeliveryEventType]

const { 'lead.ready-for-delivery': _, ...inFeed } = deliveryEvents

/** Every kind of event of the event feed. Event hooks send these. */
export const feedEvents = inFeed

export type FeedEventType = keyof typeof feedEvents
export const feedEventTypes = Object.keys(feedEvents) as FeedEventType[]

/** Kinds that a lead subscription may send. The first is sent by default (contract, section 7 rule 14). */
export const leadEventTypes = [
  'lead.ready-for-delivery',
  'lead.captured',
  'lead.delivered',
  'lead.delivery-failed',
  'message.unseen',
] as const satisfies DeliveryEventType[]
