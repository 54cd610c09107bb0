import { type TProperties, type TSchema, Type } from 'typebox'
import { type EventName, eventCategories } from '../../contract/event-categories.ts'
import { OneOf, Score, Sequence, Strict, Time } from './fields.ts'
import { AuthorAnswer, MessageAnswer } from './messages.ts'

/** An event of `GET /events` (specification, section 6). docs/events.md is generated from these definitions. */
export interface EventDefinition {
  data: TSchema
  /** Whether the event ends the stream and the client must not reconnect. */
  terminal: 'never' | 'always' | 'when reauthenticationRequired'
  /** Whether a stream that resumes replays the event. */
  replayed: boolean
  /** Whether the event has an id and a sequence. Other events do not change the position. */
  sequenced: boolean
  /** Which streams get the event: all of the conversation, or those of the affected session. */
  audience: 'conversation' | 'session'
}

const Line = Type.String({ minLength: 1 })
const Agent = Strict({ displayName: Line, avatarUrl: Type.Optional(Line) })
const event = (data: TProperties, more: Partial<EventDefinition> = {}): EventDefinition => ({
  data: Strict(data),
  terminal: 'never',
  replayed: true,
  sequenced: true,
  audience: 'conversation',
  ...more,
})
const toSession = { audience: 'session' } as const
const passing = { replayed: false, sequenced: false } as const
const sessionEnd = { audience: 'session', terminal: 'always' } as const

export const eventDefinitions = {
  'message.accepted': event({ message: MessageAnswer }),
  'message.received': event({ message: MessageAnswer }),
  'message.grew': event({ messageId: Line, offset: Type.Integer({ minimum: 0 }), text: Line }, passing),
  'message.completed': event({ message: MessageAnswer }),
  'message.state.changed': event({
    messageId: Line,
    clientOperationId: Type.Optional(Line),
    state: OneOf(['sent', 'delivered', 'read', 'failed']),
  }),
  'message.redacted': event({ messageId: Line }),
  'typing.started': event({ author: AuthorAnswer }, { replayed: false }),
  'typing.stopped': event({ author: AuthorAnswer }, { replayed: false }),
  'agent.assigned': event({ agent: Agent }),
  'agent.unassigned': event({ agent: Agent }),
  'session.identified': event({}, toSession),
  'session.closed': event({}, sessionEnd),
  'navigation.requested': event({ commandId: Line, url: Line, label: Type.Optional(Line), expiresAt: Time }, toSession),
  'navigation.cancelled': event({ commandId: Line }, toSession),
  'screenshot.requested': event({ requestId: Line, purpose: Type.Optional(Line), expiresAt: Time }, toSession),
  'screenshot.cancelled': event({ requestId: Line }, toSession),
  'conversation.closed': event({}),
  'conversation.reopened': event({}),
  'rating.requested': event({}),
  'rating.given': event({ score: Score, comment: Type.Optional(Line) }),
  'availability.changed': event({ online: Type.Boolean(), nextChangeAt: Type.Optional(Time) }, passing),
  'session.expired': event({}, sessionEnd),
  'session.revoked': event({}, sessionEnd),
  'visitor.banned': event({}, sessionEnd),
  'connection.disabled': event({}, sessionEnd),
  'replay.reset.required': event(
    {
      reason: OneOf(['epoch_changed', 'position_unknown', 'window_exceeded']),
      reauthenticationRequired: Type.Boolean(),
    },
    { audience: 'session', terminal: 'when reauthenticationRequired', replayed: false },
  ),
} as const satisfies Record<EventName, EventDefinition>

/** Schema of an event's `data` line. */
export const eventSchema = (name: EventName) =>
  Strict({
    ...(eventDefinitions[name].sequenced ? { sequence: Sequence } : {}),
    type: OneOf([name]),
    category: OneOf([eventCategories[name]]),
    occurredAt: Time,
    data: eventDefinitions[name].data,
  })
