import { type TSchema, Type } from 'typebox'
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
  meaning: string
}

const Empty = Strict({})
const Line = Type.String({ minLength: 1 })
const Agent = Strict({ displayName: Line, avatarUrl: Type.Optional(Line) })
const event = (data: TSchema, meaning: string, more: Partial<EventDefinition> = {}): EventDefinition => ({
  data,
  terminal: 'never',
  replayed: true,
  sequenced: true,
  audience: 'conversation',
  meaning,
  ...more,
})
const toSession = { audience: 'session' } as const
const sessionEnd = { audience: 'session', terminal: 'always' } as const

export const eventDefinitions = {
  'message.accepted': event(Strict({ message: MessageAnswer }), 'The visitor’s own message is in the conversation.'),
  'message.received': event(Strict({ message: MessageAnswer }), 'A message from the other side.'),
  'message.grew': event(
    Strict({ messageId: Line, offset: Type.Integer({ minimum: 0 }), text: Line }),
    'A message that grows has gained text. `offset` counts the code points before it. A client whose text is shorter has missed a part and reads the message again. A stream that resumes begins with the whole text so far. At most ten a second for a message.',
    { replayed: false, sequenced: false },
  ),
  'message.completed': event(
    Strict({ message: MessageAnswer }),
    'A message that grew has ended, with its whole text. It keeps its `sequence`.',
  ),
  'message.state.changed': event(
    Strict({
      messageId: Line,
      clientOperationId: Type.Optional(Line),
      state: OneOf(['sent', 'delivered', 'read', 'failed']),
    }),
    'The state of a message advanced. It never goes back. The state of an agent’s message also counts for earlier messages of agents.',
  ),
  'message.redacted': event(
    Strict({ messageId: Line }),
    'An operator withdrew the message. Its text is removed from history, replays and export.',
  ),
  'typing.started': event(
    Strict({ author: AuthorAnswer }),
    'Another participant types. It expires after 8 seconds without a repeat.',
    { replayed: false },
  ),
  'typing.stopped': event(
    Strict({ author: AuthorAnswer }),
    'The participant stopped, sent the message, or 8 seconds passed.',
    {
      replayed: false,
    },
  ),
  'agent.assigned': event(Strict({ agent: Agent }), 'An agent took the conversation and replaces any previous agent.'),
  'agent.unassigned': event(Strict({ agent: Agent }), 'The agent released the conversation. It has no agent now.'),
  'session.identified': event(
    Empty,
    'The visitor was identified: this session is closed, and the identifying client has a new one. Other tabs with this session ask the host for the identity and begin their own session.',
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
  'conversation.reopened': event(Empty, 'The conversation is open again. The message that reopened it follows.'),
  'rating.requested': event(Empty, 'The visitor may rate the closed conversation, until it is reopened.'),
  'rating.given': event(
    Strict({ score: Score, comment: Type.Optional(Line) }),
    'The visitor rated the closed conversation, maybe in another tab.',
  ),
  'availability.changed': event(
    Strict({ online: Type.Boolean(), nextChangeAt: Type.Optional(Time) }),
    'The installation became online or away, or its next change is at another time. Offer the offline form while `online` is false.',
    { replayed: false, sequenced: false },
  ),
  'session.expired': event(Empty, 'The session ended: it was not renewed in time.', sessionEnd),
  'session.revoked': event(Empty, 'The session ended: an operator revoked it.', sessionEnd),
  'visitor.banned': event(Empty, 'The session ended: the visitor was banned.', sessionEnd),
  'connection.disabled': event(Empty, 'The session ended: the connection of the installation is disabled.', sessionEnd),
  'replay.reset.required': event(
    Strict({
      reason: OneOf(['epoch_changed', 'position_unknown', 'window_exceeded']),
      reauthenticationRequired: Type.Boolean(),
    }),
    'The stream cannot resume from the given position and ends. Read the history again and resume from its `lastSequence`. `reauthenticationRequired` says that the position belongs to a conversation that this session may not read: the session ends for this client.',
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
