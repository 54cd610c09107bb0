import { isCompletion, isEntry, type LogEnd, type LogEvent } from '../log-event.ts'
import { transientMs } from './transient-sweep.ts'

/** An event to append. The log adds the sequence, the time, the state after it and `removableAt`. */
export type EventDraft = Omit<LogEvent, 'sequence' | 'occurredAt' | 'closed' | 'waitingSince' | 'removableAt'>

const opens = (draft: EventDraft) => isEntry(draft) || draft.type === 'conversation.reopened'

/** A visitor waits from the first message or form after an answer, or from a bot's request for a person. */
function waitingAfter(draft: EventDraft, end: LogEnd, occurredAt: Date) {
  const { type, message } = draft
  if (isCompletion(draft)) return end.waitingSince
  const begins = message ? message.author.kind === 'visitor' : type === 'human.requested' || type === 'form.submitted'
  if (begins) return end.waitingSince ?? occurredAt
  return message ? undefined : end.waitingSince
}

/** Returns the event with its sequence: the one after the end of its log. */
export function eventAfter(end: LogEnd, { transient, ...draft }: EventDraft, occurredAt: Date): LogEvent {
  const closed = draft.type === 'conversation.closed' || (end.closed && !opens(draft))
  return {
    ...draft,
    sequence: end.sequence + 1,
    occurredAt,
    closed: closed || undefined,
    waitingSince: waitingAfter(draft, end, occurredAt),
    transient,
    removableAt: transient && new Date(occurredAt.getTime() + transientMs),
  }
}

export const reopened = ({ conversationId }: EventDraft): EventDraft => ({
  conversationId,
  type: 'conversation.reopened',
})
