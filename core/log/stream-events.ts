import type { Session } from '../visitors/session-store.ts'
import { encodeEvent, type LogEvent } from './model.ts'

/** An event encoded once for all its readers. */
export interface EncodedEvent {
  id: string
  sequence: number
  type: string
  json: string
}

export function encodeFor(event: LogEvent, epoch: string): EncodedEvent {
  const { sequence, type } = event
  return { id: `${epoch}-${sequence}`, sequence, type, json: encodeEvent(event) }
}

/**
 * Whether a session's streams carry an event. They carry no typing of visitors and no events of
 * other sessions.
 */
export function isSentTo({ sessionId, transient, data }: LogEvent, session: Session): boolean {
  if (transient && data?.author?.kind === 'visitor') return false
  return sessionId === undefined || sessionId === session.sessionId
}

/** The event after which a client reads the history again. */
export function resetRequired(epoch: string, head: number, decision: { reason: string; at: Date }): EncodedEvent {
  return {
    id: `${epoch}-${head}`,
    sequence: head,
    type: 'replay.reset.required',
    json: JSON.stringify({
      sequence: head,
      type: 'replay.reset.required',
      occurredAt: decision.at.toISOString(),
      data: { reason: decision.reason, reauthenticationRequired: false },
    }),
  }
}
