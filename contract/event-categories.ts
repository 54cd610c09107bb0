/** How clients treat an event of an unknown type (contract, section 7). A `command` asks to do something. */
type EventCategory = 'informational' | 'security' | 'command'

/** The category of each type of event on a stream. */
export const eventCategories = {
  'message.accepted': 'informational',
  'message.received': 'informational',
  'message.grew': 'informational',
  'message.completed': 'informational',
  'message.state.changed': 'informational',
  'message.redacted': 'informational',
  'typing.started': 'informational',
  'typing.stopped': 'informational',
  'agent.assigned': 'informational',
  'agent.unassigned': 'informational',
  'conversation.closed': 'informational',
  'conversation.reopened': 'informational',
  'rating.requested': 'informational',
  'rating.given': 'informational',
  'availability.changed': 'informational',
  'session.identified': 'security',
  'session.closed': 'security',
  'session.expired': 'security',
  'session.revoked': 'security',
  'visitor.banned': 'security',
  'connection.disabled': 'security',
  'replay.reset.required': 'security',
  'navigation.requested': 'command',
  'navigation.cancelled': 'command',
  'screenshot.requested': 'command',
  'screenshot.cancelled': 'command',
} as const satisfies Record<string, EventCategory>

export type EventName = keyof typeof eventCategories

/** What a client does with an event of an unknown type, by its category. */
export const compatibility = {
  /** Ignores the event. */
  informational: 'ignore',
  /** Surfaces an error and stops automatic sends. */
  security: 'stop',
  /** Surfaces an error and leaves the command to expire. */
  command: 'decline',
} as const satisfies Record<EventCategory, string>
