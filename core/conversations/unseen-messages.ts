import { type Core, dateOf } from '../core.ts'
import { contactsOf } from '../leads/leads.ts'
import { logOf } from '../log/event-log.ts'
import { eventsOf } from '../log/event-store.ts'
import { type EventType, isEntry, type LogEvent, operationKeys } from '../log-event.ts'
import { notErasing } from '../mongodb/not-erasing.ts'
import { sitesOf } from './conversation-access.ts'
import { readEnd } from './guarded-appends.ts'
import { isReceipt, isRedaction } from './model.ts'

/** Minutes after which a message counts as unseen if the website has no setting. */
export const unseenAfterDefault = 10

/** Time in milliseconds from a message to the first look. No website may have a shorter wait. */
export const firstLookMs = 60_000
/** Time after which another core looks again. Longer than `firstLookMs`. */
const lookMs = 5 * 60_000
const batch = 200

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
export async function tellUnseenMessages(core: Core) {
  for (let after = new Date(0); ; ) {
    const due = { unseenAt: { $gt: after, $lte: dateOf(core) }, ...notErasing }
    const earliest = { projection: { unseenAt: 1 }, sort: { unseenAt: 1 }, limit: batch, hint: 'by_unseen' } as const
    const found = await core.db.conversations.find(due, earliest).toArray()
    for (const { _id, unseenAt } of found) await look(core, _id, unseenAt!)
    if (found.length < batch) return
    after = found.at(-1)!.unseenAt!
  }
}

/** Moves the time to look while it works, so that one core looks. A new message moves it back. */
async function look(core: Core, conversationId: string, lookAt: Date) {
  const until = dateOf(core, lookMs)
  if (!(await moveLook(core, conversationId, lookAt, until))) return
  const { end, latest } = await readLatest(core, conversationId)
  const unseen = firstUnseen(latest)
  const waitMs = unseen && (await waitOf(core, conversationId))
  const dueAt = waitMs === undefined ? undefined : new Date(unseen!.occurredAt.getTime() + waitMs)
  // What has not ended is not told yet, because the mail has the whole texts.
  const grows = unseenIn(latest).some(({ growth }) => growth?.state === 'growing')
  const isDue = dueAt !== undefined && dueAt.getTime() <= core.now() && !grows
  if (isDue && !(await appendUnseen(core, end, unseen!))) return
  // A core may have died after it told about the message, and before it queued the mail.
  const told = isDue ? unseen!.message!.messageId : toldIn(latest)?.data?.messageId
  if (told) await queueMail(core, conversationId, told)
  await moveLook(core, conversationId, until, isDue ? undefined : dueAt)
}

async function readLatest(core: Core, conversationId: string) {
  const { sequence: end } = await readEnd(core, conversationId)
  return { end, latest: await decidingEvents(core, conversationId, end) }
}

/** Returns the newest events first, back to the time when the visitor was there or was told. */
async function decidingEvents(core: Core, conversationId: string, through: number): Promise<LogEvent[]> {
  const page = await eventsOf(core).newestOf(deciding, { conversationId, through }, batch)
  if (page.length < batch || page.some(isKnown)) return page
  return [...page, ...(await decidingEvents(core, conversationId, page.at(-1)!.sequence - 1))]
}

/** Does nothing if there is no mail server, or already a mail for this message. */
async function queueMail({ config, db, bus, now }: Core, conversationId: string, messageId: string) {
  if (config.SMTP_URL === '') return
  const at = new Date(now())
  await db.conversations.updateOne(
    { _id: conversationId, 'mail.messageId': { $ne: messageId } },
    { $set: { mail: { messageId, state: 'waiting', at, dueAt: at, attempts: 0 } } },
  )
  bus.emit('due', 'mails of unseen answers', 0)
}

export async function stillUnseen(core: Core, conversationId: string): Promise<LogEvent[]> {
  const { latest } = await readLatest(core, conversationId)
  return toldIn(latest) === undefined ? [] : unseenIn(latest)
}

/** Moves or removes the time to look. Returns false if it has changed meanwhile. */
async function moveLook({ db }: Core, conversationId: string, from: Date, to: Date | undefined) {
  const update = to ? { $set: { unseenAt: to } } : { $unset: { unseenAt: '' as const } }
  const { modifiedCount } = await db.conversations.updateOne({ _id: conversationId, unseenAt: from }, update)
  return modifiedCount === 1
}

/** Returns the shortest wait of the conversation's websites in milliseconds; undefined if none has a wait. */
async function waitOf(core: Core, conversationId: string) {
  const waits = (await sitesOf(core, conversationId)).flatMap((site) =>
    site?.capabilities.receipts ? (site.unseenAfterMinutes ?? unseenAfterDefault) || [] : [],
  )
  return waits.length === 0 ? undefined : Math.min(...waits) * 60_000
}

async function appendUnseen(core: Core, end: number, { conversationId, sequence, occurredAt, message }: LogEvent) {
  const leadId = (await contactsOf(core, [conversationId])).get(conversationId)?.leadId
  return logOf(core).appendAfter(end, {
    conversationId,
    type: 'message.unseen',
    operationKey: operationKeys.unseen(sequence),
    inputHash: 'unseen',
    data: { messageId: message!.messageId, sentAt: occurredAt.toISOString(), ...(leadId && { leadId }) },
  })
}

/**
 * Returns the oldest unseen message of an agent or a bot; undefined if the visitor was not there since the
 * last such message was told. `latest` has the newest events first.
 */
export const firstUnseen = (latest: LogEvent[]): LogEvent | undefined =>
  toldIn(latest) === undefined ? unseenIn(latest)[0] : undefined

const isRead = (event: LogEvent) =>
  event.type === 'message.state.changed' && isReceipt(event) && event.data?.state === 'read'
const isThere = (event: LogEvent) => isRead(event) || (isEntry(event) && event.type !== 'message.received')

/** The visitor was there, or was told. */
const isKnown = (event: LogEvent) => isThere(event) || event.type === 'message.unseen'

/** Returns the event that tells about a message; undefined if the visitor was there since. */
function toldIn(latest: LogEvent[]) {
  const newest = latest.find(isKnown)
  return newest?.type === 'message.unseen' ? newest : undefined
}

/** Returns the messages of agents and bots that the visitor has not seen, oldest first. */
function unseenIn(latest: LogEvent[]) {
  const withdrawn = latest.flatMap((event) => (isRedaction(event) ? event.messageSequence : []))
  const seenTo = latest.filter(isThere).map((event) => (isRead(event) ? event.messageSequence! : event.sequence))
  const from = Math.max(0, ...seenTo)
  return latest
    .filter(
      ({ type, sequence, message, growth }) =>
        type === 'message.received' &&
        sequence > from &&
        !message?.redactedAt &&
        !withdrawn.includes(sequence) &&
        // An answer that was stopped before its first word has nothing to show.
        (growth?.state === 'growing' || message?.body.trim()),
    )
    .reverse()
}
