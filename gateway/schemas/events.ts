import { type TSchema, Type } from 'typebox'
import { OneOf, Sequence, Strict, Time } from './fields.ts'
import { MessageAnswer } from './messages.ts'

/**
 * One type of event on `GET /events` (specification, section 6). docs/events.md is generated from
 * them.
 */
export interface EventDefinition {
  data: TSchema
  /** Whether the event ends the stream and the client must not reconnect. */
  terminal: 'never' | 'always' | 'when reauthenticationRequired'
  /** Whether a stream that resumes before the event sends it again. */
  replayed: boolean
  /** Sent to all streams of the conversation, or only to those of the session that it concerns. */
  audience: 'conversation' | 'session'
  meaning: string
}

const Empty = Strict({})
const Line = Type.String({ minLength: 1 })
const Agent = Strict({ displayName: Line, avatarUrl: Type.Optional(Line) })
const Author = Strict({
  kind: OneOf(['visitor', 'agent', 'system']),
  displayName: Type.Optional(Line),
  avatarUrl: Type.Optional(Line),
})

const event = (data: TSchema, meaning: string, more: Partial<EventDefinition> = {}): EventDefinition => ({
  data,
  terminal: 'never',
  replayed: true,
  audience: 'conversation',
  meaning,
  ...more,
})
const toSession = { audience: 'session' } as const
const sessionEnd = { audience: 'session', terminal: 'always' } as const

/** Every type of event that a stream may carry. */
export const eventDefinitions = {
  'message.accepted': event(Strict({ message: MessageAnswer }), 'The visitor’s own message is in the conversation.'),
  'message.received': event(Strict({ message: MessageAnswer }), 'A message from the other side.'),
  'message.state.changed': event(
    Strict({
      messageId: Line,
      clientOperationId: Type.Optional(Line),
      state: OneOf(['sent', 'delivered', 'read', 'failed']),
    }),
    'A message of the visitor’s went on to another state, forwards only.',
  ),
  'typing.started': event(
    Strict({ author: Author }),
    'Somebody else types. Count it as over after 8 seconds without another one.',
    { replayed: false },
  ),
  'typing.stopped': event(Strict({ author: Author }), 'They stopped, sent their message, or 8 seconds went by.', {
    replayed: false,
  }),
  'agent.assigned': event(
    Strict({ agent: Agent }),
    'Somebody takes care of the conversation, in place of whoever did.',
  ),
  'agent.unassigned': event(Strict({ agent: Agent }), 'They no longer do, and nobody else does.'),
  'session.identified': event(
    Empty,
    'The visitor was identified: this session is closed, and the client that identified them has another one. A tab that shares the session asks the host who the visitor is, and begins a session of its own.',
    toSession,
  ),
  'session.closed': event(
    Empty,
    'The session was closed by its visitor, by an identification or by a change of identity.',
    sessionEnd,
  ),
  'navigation.requested': event(
    Strict({ commandId: Line, url: Line, label: Type.Optional(Line), expiresAt: Time }),
    'An operator asks the visitor to go to a page. Never follow it without their agreement.',
    toSession,
  ),
  'navigation.cancelled': event(Strict({ commandId: Line }), 'The request was withdrawn.', toSession),
  'screenshot.requested': event(
    Strict({ requestId: Line, purpose: Type.Optional(Line), expiresAt: Time }),
    'An operator asks for a picture of the page. Never take one without consent.',
    toSession,
  ),
  'screenshot.cancelled': event(Strict({ requestId: Line }), 'The request was withdrawn.', toSession),
  'conversation.closed': event(Empty, 'The other side is done. The next message opens the conversation again.'),
  'conversation.reopened': event(Empty, 'The conversation goes on: the message that opened it comes next.'),
  'session.expired': event(Empty, 'The session is over: it was not renewed in time.', sessionEnd),
  'session.revoked': event(Empty, 'The session is over: an operator ended it.', sessionEnd),
  'visitor.banned': event(Empty, 'The session is over: the visitor was banned.', sessionEnd),
  'connection.disabled': event(Empty, 'The session is over: the installation’s connection is off.', sessionEnd),
  'replay.reset.required': event(
    Strict({
      reason: OneOf(['epoch_changed', 'position_unknown', 'window_exceeded']),
      reauthenticationRequired: Type.Boolean(),
    }),
    'The stream cannot go on from the position given, and ends. Read the history anew and resume from its `lastSequence`.',
    { audience: 'session', terminal: 'when reauthenticationRequired', replayed: false },
  ),
} as const satisfies Record<string, EventDefinition>

export type EventName = keyof typeof eventDefinitions

/** The `data` line of an event. Types differ in the field `data` only. */
export const eventSchema = (name: EventName) =>
  Strict({
    sequence: Sequence,
    type: OneOf([name]),
    occurredAt: Time,
    data: eventDefinitions[name].data,
  })
