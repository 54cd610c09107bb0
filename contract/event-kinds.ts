import { type Static, type TObject, type TProperties, type TSchema, Type } from 'typebox'
import texts from './event-kinds.json' with { type: 'json' }

export { leadEventTypes } from './lead-event-types.ts'

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
  /** Whether `data` also has the mapped fields of the lead. */
  hasLeadFields?: true
  data: Shape
  /** The `data` of a test delivery. */
  example: Static<Shape>
}

const kindOf =
  (category: EventKind['category'], scope: string) =>
  <Shape extends TProperties & { reference: TSchema }>(
    properties: Shape,
    more: Pick<EventKind, 'hasLeadFields'> = {},
  ): EventKind<TObject<Shape>> => {
    const data = Type.Object(properties)
    return { version: '1.0', category, scope, data, ...more, example: exampleOf(data) as Static<TObject<Shape>> }
  }

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

const ofConversation = { reference: Id('the conversation'), conversationId: Text }
const conversation = conversationKind(ofConversation)
const tag = conversationKind({ ...ofConversation, tag: Text })
const message = conversationKind({
  reference: Id('the message'),
  messageId: Text,
  conversationId: Text,
  sequence: Type.Integer(),
  body: Text,
  displayName: Type.Optional(Type.String({ description: 'of the author' })),
  redactedAt: Type.Optional(Type.String({ description: 'set if the message was withdrawn; `body` is then empty' })),
})
const delivery = leadKind({
  reference: Id('the delivery'),
  subscriptionId: Text,
  deliveryId: Text,
  leadId: Type.Optional(Text),
})

/** Every kind of event. Destinations receive all of them; the event feed has all but the first. */
export const deliveryEvents = {
  'lead.ready-for-delivery': leadKind({ reference: Id('the lead') }, { hasLeadFields: true }),
  'lead.captured': leadKind({ reference: Id('the lead') }, { hasLeadFields: true }),
  'lead.delivered': delivery,
  'lead.delivery-failed': delivery,
  'workflow.handoff': leadKind({
    reference: Id('the delivery'),
    workflowId: Text,
    subscriptionId: Text,
    deliveryId: Text,
    leadId: Text,
    outcome: OneOf('accepted', 'failed'),
  }),
  'conversation.created': conversation,
  'conversation.assigned': conversationKind({
    ...ofConversation,
    displayName: Type.String({ description: 'of the agent' }),
  }),
  'conversation.unassigned': conversation,
  'conversation.closed': conversation,
  'conversation.reopened': conversation,
  'rating.given': conversationKind({
    ...ofConversation,
    score: Type.Integer({ description: '1 to 5; 5 is the best' }),
    comment: Type.Optional(Text),
  }),
  'conversation.tagged': tag,
  'conversation.untagged': tag,
  'message.visitor': message,
  'message.agent': message,
  'message.bot': message,
  'message.redacted': conversationKind({ ...ofConversation, reference: Id('the message'), messageId: Text }),
  'message.unseen': conversationKind(
    {
      ...ofConversation,
      reference: Id('the message'),
      messageId: Text,
      sentAt: Text,
    },
    { hasLeadFields: true },
  ),
  'human.requested': conversation,
  'bot.stopped': conversation,
  'bot.resumed': conversation,
  'visitor.identified': visitorKind({ reference: Id('the session'), sessionId: Text, conversationId: Text }),
  'visitor.left': visitorKind({
    reference: Id('the session'),
    sessionId: Text,
    conversationId: Text,
    reason: OneOf('closed', 'expired', 'revoked', 'banned', 'connection_disabled'),
  }),
  'subscription.disabled': operationalKind({
    reference: Id('the subscription'),
    subscriptionId: Text,
    reason: OneOf('operator', 'rejected_auth', 'gone', 'failing'),
  }),
  'subscription.failing': operationalKind({
    reference: Id('the subscription'),
    subscriptionId: Text,
    deliveryId: Text,
  }),
}

export type DeliveryEventType = keyof typeof deliveryEvents

export const eventOccasions: Record<DeliveryEventType, string> = texts

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
