import type { InboxEvent, Message, Note, Rating, SubmittedForm } from '#proto/messaging/v1/messaging_pb.js'
import { ConsentDecision, type ConsentRecord } from '#proto/session/v1/session_pb.js'
import { millisecondsOf } from '../../time.ts'

export type TimelineItem = { key: string; at: number } & (
  | { kind: 'message'; message: Message }
  | { kind: 'note'; note: Note }
  | { kind: 'event'; text: string; form?: SubmittedForm }
)

interface TimelineParts {
  messages: readonly Message[]
  /** Events of the log, in order. */
  events: readonly InboxEvent[]
  notes: readonly Note[]
  consent: ConsentRecord | undefined
  hasOlder: boolean
  me: string
}

/** Messages and events keep the order of the log. Notes and the consent are inserted by their time. */
export function buildTimeline({ messages, events, notes, consent, hasOlder, me }: TimelineParts) {
  const oldest = hasOlder ? (messages[0]?.sequence ?? 0) : 0
  const logged = [
    ...messages.map((message) => ({
      sequence: message.sequence,
      item: { kind: 'message' as const, key: message.messageId, at: millisecondsOf(message.createdAt), message },
    })),
    ...events.flatMap((event) => {
      const text = event.sequence < oldest ? undefined : eventText(event, me)
      return text === undefined
        ? []
        : [{ sequence: event.sequence, item: eventItem(`${event.sequence}`, event.occurredAt, text, event.form) }]
    }),
  ]
  const timeline: TimelineItem[] = logged.sort((one, other) => one.sequence - other.sequence).map(({ item }) => item)
  const from = hasOlder ? (timeline[0]?.at ?? 0) : 0
  const timed: TimelineItem[] = [
    ...notes.map((note) => ({
      kind: 'note' as const,
      key: note.noteId,
      at: millisecondsOf(note.createdAt),
      note,
    })),
    ...consentItems(consent),
  ]
  for (const item of timed.filter(({ at }) => at >= from).sort((one, other) => one.at - other.at)) {
    const before = timeline.findLastIndex(({ at }) => at <= item.at)
    timeline.splice(before + 1, 0, item)
  }
  return timeline
}

const eventItem = (key: string, time: Message['createdAt'], text: string, form?: SubmittedForm): TimelineItem => ({
  kind: 'event',
  key: `event ${key}`,
  at: millisecondsOf(time),
  text,
  form,
})

const fixedTexts: Record<string, string> = {
  'conversation.closed': 'Conversation closed',
  'conversation.reopened': 'Conversation reopened',
  'form.submitted': 'The visitor submitted a form',
  'rating.requested': 'The visitor was asked for a rating',
  'bot.stopped': 'The bot was stopped',
  'bot.resumed': 'Given back to the bot',
  'session.identified': 'The site verified the visitor',
  'session.closed': 'The session ended',
  'session.expired': 'The session expired',
  'session.revoked': 'The session was revoked',
  'visitor.banned': 'The visitor was banned',
  'connection.disabled': 'The connection was disabled',
  'screenshot.requested': 'Screenshot requested',
}

/** Returns the text of an event, or undefined if the timeline does not show events of this type. */
export function eventText({ type, agent, label, url, rating, tag }: InboxEvent, me: string) {
  const name = agent?.displayName
  if (type === 'agent.assigned') return name === me ? 'Assigned to you' : `Assigned to ${name}`
  if (type === 'agent.unassigned') return name === me ? 'You were unassigned' : `${name} was unassigned`
  if (type === 'human.requested') return name ? `${name} (bot) asked for a person` : 'The visitor asked for a person'
  if (type === 'rating.given') return ratingText(rating)
  if (type === 'navigation.requested') return `Page suggested: ${label || url}`
  if (type === 'conversation.tagged') return `Tagged ${tag}`
  if (type === 'conversation.untagged') return `Tag ${tag} removed`
  return fixedTexts[type]
}

/** Isolates the comment, so that its direction does not change the rest of the line. */
const ratingText = ({ score = 0, comment }: Partial<Rating> = {}) =>
  `The visitor rated ${score} of 5${comment ? `: \u2068${comment}\u2069` : ''}`

function consentItems(consent: ConsentRecord | undefined): TimelineItem[] {
  if (!consent) return []
  const text = consent.decision === ConsentDecision.GRANTED ? 'Consent granted' : 'Consent denied'
  return [eventItem('consent', consent.decidedAt, text)]
}
