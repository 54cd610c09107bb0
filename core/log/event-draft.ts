import type { LogEnd, LogEvent } from '../log-event.ts'

/** An event to append. The log adds the sequence, the time, the state after it and `removableAt`. */
export type EventDraft = Omit<LogEvent, 'sequence' | 'occurredAt' | 'closed' | 'waitingSince' | 'removableAt'>

/** Whether the event opens a closed conversation. */
export const opens = ({ message, type }: EventDraft) => message !== undefined || type === 'conversation.reopened'

/** A visitor waits from the first message after an answer, or from a bot's request for a person. */
export function waitingAfter({ type, message }: EventDraft, end: LogEnd, occurredAt: Date): Date | undefined {
  const begins = message ? message.author.kind === 'visitor' : type === 'human.requested'
  if (begins) return end.waitingSince ?? occurredAt
  return message ? undefined : end.waitingSince
}

export const reopened = ({ conversationId }: EventDraft): EventDraft => ({
  conversationId,
  type: 'conversation.reopened',
})
