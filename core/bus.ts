import { EventEmitter } from 'node:events'
import type { LogEnd } from './log/event-store.ts'
import type { LogEvent } from './log/model.ts'

/**
 * What the modules of one core process tell each other. Handlers run at once, in the order of their subscription: a cache
 * subscribes before whatever reads it.
 */
export type Bus = EventEmitter<{
  /** This process appended an event. */
  appended: [event: LogEvent]
  /** Another process appended events: a conversation's log goes at least this far. */
  advanced: [conversationId: string, end: LogEnd]
  /** The state of these ids changed, here or in another process. */
  changed: [ids: string[]]
  /** Notifications of other processes may have been lost: read again whatever they would have changed. */
  gap: []
}>

export function createBus(): Bus {
  return new EventEmitter()
}
