import type { EventLog } from '../log/event-log.ts'
import type { EventStore } from '../log/event-store.ts'
import { type EventType, isEntry, type LogEnd, type LogEvent, operationKeys } from '../log-event.ts'
import type { ConversationStore } from './conversation-store.ts'
import { type ContactsOf, isReceipt, isRedaction } from './model.ts'
import type { SitesOf } from './site-capabilities.ts'

/** Minutes after which a message counts as unseen if the website has no setting. */
export const unseenAfterDefault = 10

/** Time in milliseconds from a message to the first look. No website may have a shorter wait. */
export const firstLookMs = 60_000
/** After this time, another core looks again. Longer than `firstLookMs`. */
const lookMs = 5 * 60_000
const batch = 200
const read = 200

const deciding: EventType[] = [
  'message.accepted',
  'message.received',
  'message.redacted',
  'message.state.changed',
  'message.unseen',
  'form.submitted',
]

/**
 * Tells, once for each absence of the visitor, that no device has shown a message of an agent or a bot
 * (contract, rule 40). The time in the conversation only says when to look; the log decides. The event
 * is appended directly after the end that was read, so a receipt that comes first wins.
 */
export function createUnseenMessages(dependencies: {
  store: Pick<ConversationStore, 'unseenAt' | 'moveUnseenAt' | 'queueMail'>
  events: Pick<EventStore, 'newestOf'>
  log: Pick<EventLog, 'appendAfter'>
  readEnds: (conversationIds: string[]) => Promise<Map<string, LogEnd>>
  sitesOf: SitesOf
  contactsOf: ContactsOf
  /** Called when the answers of a conversation may have to be mailed. Undefined without a mail server. */
  onMail: (() => void) | undefined
  now: () => number
}) {
  const { store, events, log, readEnds, sitesOf, contactsOf, onMail, now } = dependencies

  /** Returns after how many milliseconds the websites of a conversation want to know; undefined for never. */
  async function waitOf(conversationId: string): Promise<number | undefined> {
    const waits = (await sitesOf(conversationId)).flatMap((site) =>
      site?.capabilities.receipts ? (site.unseenAfterMinutes ?? unseenAfterDefault) || [] : [],
    )
    return waits.length === 0 ? undefined : Math.min(...waits) * 60_000
  }

  /**
   * Moves the time to look while it works, so that one core looks. A message that comes meanwhile moves
   * it back, and the time stays.
   */
  async function look(conversationId: string, lookAt: Date) {
    const until = new Date(now() + lookMs)
    if (!(await store.moveUnseenAt(conversationId, lookAt, until))) return
    const { end, latest } = await readLatest(conversationId)
    const unseen = firstUnseen(latest)
    const waitMs = unseen && (await waitOf(conversationId))
    const dueAt = waitMs === undefined ? undefined : new Date(unseen!.occurredAt.getTime() + waitMs)
    const isDue = dueAt !== undefined && dueAt.getTime() <= now()
    if (isDue && !(await append(end, unseen!))) return
    // A core may have died after it told about the message, and before it queued the mail.
    const told = isDue ? unseen!.message!.messageId : toldIn(latest)?.data?.messageId
    if (told && onMail) {
      await store.queueMail(conversationId, told, new Date(now()))
      onMail()
    }
    await store.moveUnseenAt(conversationId, until, isDue ? undefined : dueAt)
  }

  async function readLatest(conversationId: string) {
    const end = (await readEnds([conversationId])).get(conversationId)?.sequence ?? 0
    return { end, latest: await events.newestOf(deciding, { conversationId, through: end }, read) }
  }

  async function append(end: number, { conversationId, sequence, occurredAt, message }: LogEvent) {
    const leadId = (await contactsOf([conversationId])).get(conversationId)?.leadId
    return log.appendAfter(end, {
      conversationId,
      type: 'message.unseen',
      operationKey: operationKeys.unseen(sequence),
      inputHash: 'unseen',
      data: { messageId: message!.messageId, sentAt: occurredAt.toISOString(), ...(leadId && { leadId }) },
    })
  }

  return {
    /** Returns the answers that were told as unseen and are still unseen, oldest first. */
    async stillUnseen(conversationId: string): Promise<LogEvent[]> {
      const { latest } = await readLatest(conversationId)
      return toldIn(latest) === undefined ? [] : unseenIn(latest)
    },

    /** Looks at the conversations in which a message may have been unseen for long enough. */
    async tell() {
      for (let after = new Date(0); ; ) {
        const found = await store.unseenAt(after, new Date(now()), batch)
        for (const { conversationId, unseenAt } of found) await look(conversationId, unseenAt)
        if (found.length < batch) return
        after = found.at(-1)!.unseenAt
      }
    },
  }
}

/**
 * Returns the oldest message of an agent or a bot that the visitor has not seen. Returns undefined if
 * the visitor was not there since the last such message was told. `latest` has the newest events first.
 */
export const firstUnseen = (latest: LogEvent[]): LogEvent | undefined =>
  toldIn(latest) === undefined ? unseenIn(latest)[0] : undefined

const isRead = (event: LogEvent) =>
  event.type === 'message.state.changed' && isReceipt(event) && event.data?.state === 'read'
const isThere = (event: LogEvent) => isRead(event) || (isEntry(event) && event.type !== 'message.received')

/** Returns the event that tells about a message; undefined if the visitor was there since. */
function toldIn(latest: LogEvent[]): LogEvent | undefined {
  const newest = latest.find((event) => isThere(event) || event.type === 'message.unseen')
  return newest?.type === 'message.unseen' ? newest : undefined
}

/** Returns the messages of agents and bots that the visitor has not seen, oldest first. */
function unseenIn(latest: LogEvent[]): LogEvent[] {
  const withdrawn = latest.flatMap((event) => (isRedaction(event) ? event.messageSequence : []))
  const seenTo = latest.filter(isThere).map((event) => (isRead(event) ? event.messageSequence! : event.sequence))
  const from = Math.max(0, ...seenTo)
  return latest
    .filter(
      ({ type, sequence, message }) =>
        type === 'message.received' && sequence > from && !message?.redactedAt && !withdrawn.includes(sequence),
    )
    .reverse()
}
