/**
 * Every event of the package, in the order of a chat's life.
 *
 * @type {(keyof import('../../../src/index.ts').WidgetEventMap)[]}
 */
export const eventNames = [
  'config.loaded',
  'connection.changed',
  'session.ready',
  'session.identified',
  'panel.opened',
  'panel.closed',
  'message.queued',
  'offline.submitted',
  'message.retrying',
  'message.retry.exhausted',
  'message.accepted',
  'message.received',
  'message.state.changed',
  'messages.changed',
  'unread.changed',
  'typing.started',
  'typing.stopped',
  'agent.assigned',
  'agent.unassigned',
  'conversation.closed',
  'conversation.reopened',
  'session.expired',
  'session.revoked',
  'session.closed',
  'visitor.banned',
  'connection.disabled',
  'replay.reset.required',
  'error',
]
