import { EventEmitter } from 'node:events'
import type { GrowingText, GrownPart, LogEnd, LogEvent } from './log-event.ts'

/** Handlers run synchronously in the order of their subscription, so a cache must subscribe before its readers. */
export type Bus = EventEmitter<{
  /** This process appended an event. */
  appended: [event: LogEvent]
  /** Another process appended events up to `end`. `event` is the one at `end`, if it was sent along. */
  advanced: [conversationId: string, end: LogEnd, event?: LogEvent]
  /** This process accepted text of a message that grows. */
  grew: [part: GrownPart]
  grewElsewhere: [part: GrownPart]
  /** Readers may now have more text of these messages. */
  growing: [texts: GrowingText[]]
  /** This process or another one changed the stored state of the objects with these ids. */
  changed: [ids: string[]]
  /** Conversations or leads were hidden, because they are erased or removed. */
  removed: [workspaceId: string, ids: string[]]
  /** Wake-ups may be lost, so listeners must read all their state again. */
  gap: []
  /** Work of a job is due, now or in `inMs`. The job's period finds work that a crash or another process left. */
  due: [job: WokenJob, inMs?: number]
  /** All wake-ups arrive again, after a time in which some may have been missing. */
  current: []
}>

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
