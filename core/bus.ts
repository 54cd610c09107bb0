import { EventEmitter } from 'node:events'
import type { GrowingText, GrownPart, LogEnd, LogEvent } from './log-event.ts'

/**
 * Passes events between the modules of one core process. Handlers run synchronously, in the order
 * of their subscription. A cache must subscribe before the modules that read it.
 */
export type Bus = EventEmitter<{
  /** This process appended an event to a conversation's log. */
  appended: [event: LogEvent]
  /**
   * Another process appended events to a conversation's log, which now has all events up to `end`.
   * `event` is the event at `end`, if the other process sent it along.
   */
  advanced: [conversationId: string, end: LogEnd, event?: LogEvent]
  /** This process accepted text of a message that grows. */
  grew: [part: GrownPart]
  /** Another process accepted text of a message that grows. */
  grewElsewhere: [part: GrownPart]
  /** Readers may now have more text of these messages. */
  growing: [texts: GrowingText[]]
  /** This process or another process changed the stored state of the objects with these ids. */
  changed: [ids: string[]]
  /** Conversations or leads of a workspace were hidden, because they are erased or removed. */
  removed: [workspaceId: string, ids: string[]]
  /** Wake-ups of other cores may have been lost, so listeners must read all their state again. */
  gap: []
  /**
   * Work of a job is due in this process, now or in this time in milliseconds. Its period finds work
   * that a crash or another process has left.
   */
  due: [job: WokenJob, inMs?: number]
  /** All wake-ups have arrived again, after a time in which some may have been missing. */
  current: []
}>

/** Names of the jobs that are woken by what makes their work. */
type WokenJob =
  | 'disable subscriptions'
  | 'end of growing messages'
  | 'expire typing'
  | 'feed of deliveries'
  | 'feed of leads'
  | 'feed of subscriptions'
  | 'finish lead fan-out'
  | 'mails of unseen answers'
  | 'recover deliveries'
  | 'removal of data'
  | 'sweep of old data'
  | 'tell operators'

export function createBus(): Bus {
  const bus: Bus = new EventEmitter()
  // Each cache adds a listener, so a high number of listeners is not a leak.
  return bus.setMaxListeners(0)
}
