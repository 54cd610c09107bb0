import { EventEmitter } from 'node:events'
import type { LogEnd } from './log/event-store.ts'
import type { LogEvent } from './log/model.ts'

/**
 * Events between the modules of one core process. Handlers run synchronously, in the order of their
 * subscription. A cache must subscribe before its readers.
 */
export type Bus = EventEmitter<{
  /** This process appended an event. */
  appended: [event: LogEvent]
  /** Another process appended events: the log has at least these events. */
  advanced: [conversationId: string, end: LogEnd]
  /** The state of these ids changed, here or in another process. */
  changed: [ids: string[]]
  /** Wake-ups may have been lost: read all state again. */
  gap: []
}>

export function createBus(): Bus {
  return new EventEmitter()
}
