import { type Static, type TObject, type TSchema, Type } from 'typebox'

const Id = (description: string) => Type.String({ description })

/** `reference` names the resource of the event (specification, section 2.7). */
type Data = TObject<{ reference: TSchema }>

/** One kind of event that destinations receive as webhooks (specification, section 4.3). */
export interface DeliveryEventKind<Shape extends Data = Data> {
  /** The `contractVersion` of its bodies. */
  version: string
  category: 'lead' | 'operational'
  /** Scope that may read the event. */
  scope: string
  /** When the event is sent, for the documents. */
  when: string
  /** Schema of `data`. */
  data: Shape
  /** The `data` of a test delivery. */
  example: Static<Shape>
}

const kind = <Shape extends Data>(definition: DeliveryEventKind<Shape>) => definition

/** Every kind of event that destinations receive. */
export const deliveryEvents = {
  'lead.ready-for-delivery': kind({
    version: '1.0',
    category: 'lead',
    scope: 'leads:read',
    when: 'a lead is delivered',
    // The mapped fields of the lead follow.
    data: Type.Object({ reference: Id('the lead') }),
    example: { reference: 'lead_test' },
  }),
  'subscription.disabled': kind({
    version: '1.0',
    category: 'operational',
    scope: 'subscriptions:read',
    when: 'a subscription was disabled',
    data: Type.Object({
      reference: Id('the subscription'),
      subscriptionId: Type.String(),
      reason: Type.Unsafe<'operator' | 'rejected_auth' | 'gone' | 'failing'>({
        type: 'string',
        enum: ['operator', 'rejected_auth', 'gone', 'failing'],
      }),
    }),
    example: { reference: 'sub_test', subscriptionId: 'sub_test', reason: 'operator' },
  }),
  'lead.delivery-failed': kind({
    version: '1.0',
    category: 'operational',
    scope: 'subscriptions:read',
    when: 'the first dead letter of a subscription since its last success',
    data: Type.Object({
      reference: Id('the delivery'),
      subscriptionId: Type.String(),
      deliveryId: Type.String(),
    }),
    example: { reference: 'dlv_test', subscriptionId: 'sub_test', deliveryId: 'dlv_test' },
  }),
}

export type DeliveryEventType = keyof typeof deliveryEvents

/** An event of any kind, with the data of its kind. */
export type DeliveryEvent = {
  [Type in DeliveryEventType]: { eventType: Type; data: Static<(typeof deliveryEvents)[Type]['data']> }
}[DeliveryEventType]

/** One kind of event of the event feed (specification: internal services; `proto/service/events/v1`). */
export interface FeedEventKind {
  /** Scope that shows the content of the event. Without it, the event has only its ids. */
  scope: string
  /** When the event is written, for the documents. */
  when: string
}

/** Every kind of event of the event feed. */
export const feedEvents = {
  'conversation.created': { scope: 'messages:read', when: 'before the first event of a conversation' },
  'conversation.assigned': { scope: 'messages:read', when: 'an agent was assigned, also in place of another' },
  'conversation.unassigned': { scope: 'messages:read', when: 'the assigned agent was removed' },
  'conversation.closed': { scope: 'messages:read', when: 'an operator closed the conversation' },
  'conversation.reopened': { scope: 'messages:read', when: 'an operator or a new message reopened it' },
  'message.visitor': { scope: 'messages:read', when: 'a message of the visitor was accepted' },
  'message.agent': { scope: 'messages:read', when: 'a message of an agent was accepted' },
  'message.redacted': { scope: 'messages:read', when: 'an operator withdrew a message' },
  'message.bot': { scope: 'messages:read', when: 'a message of a bot was accepted' },
  'human.requested': { scope: 'messages:read', when: 'a bot asked for a person, and is stopped' },
  'bot.stopped': { scope: 'messages:read', when: 'an operator stopped the bots of the conversation' },
  'bot.resumed': { scope: 'messages:read', when: 'an operator gave the conversation back to its bot' },
  'visitor.identified': { scope: 'sessions:read', when: 'the visitor became a verified visitor' },
  'visitor.left': {
    scope: 'sessions:read',
    when: 'a session with an open stream ended, and no other session continues it',
  },
  'lead.captured': { scope: 'leads:read', when: 'a lead was stored' },
  'lead.delivered': { scope: 'leads:read', when: 'a destination accepted a delivery of the lead' },
  'lead.delivery-failed': { scope: 'leads:read', when: 'a delivery of the lead ended without acceptance' },
  'workflow.handoff': { scope: 'leads:read', when: 'a delivery ended as the hand-off of its subscription says' },
  'subscription.disabled': { scope: 'subscriptions:read', when: 'a subscription was disabled' },
} as const satisfies Record<string, FeedEventKind>

export type FeedEventType = keyof typeof feedEvents
