import type { Filter } from 'mongodb'
import { byKey } from '../../platform/concurrency/batcher.ts'
import { createSingleFlight } from '../concurrency/single-flight.ts'
import { type Core, dateOf, perCore } from '../core.ts'
import { logFailure } from '../errors.ts'
import { type Conversation, queuePlaceOf } from '../log/conversation-model.ts'
import {
  type ConversationDocument,
  conversationOf,
  recordStatus,
  type StatusChange,
  withoutNotes,
} from '../log/conversation-store.ts'
import { eventsOf, isActivity } from '../log/event-store.ts'
import { createLogFollower } from '../log/log-follower.ts'
import { isEntry, type LogEvent } from '../log-event.ts'
import { notErasing } from '../mongodb/not-erasing.ts'
import { cutPage, type PageEnd, type PageRequest, pageTokenOf, readPageToken } from '../page-token.ts'
import { field, integer, validate } from '../rules.ts'
import { type Assignee, botAuthorOf, isRating, ratingOf, tagIssue } from './model.ts'
import { firstLookMs } from './unseen-messages.ts'

interface ListQuery {
  workspaceId?: string
  status?: 'open' | 'closed'
  assignee?: Assignee
  /** True for open conversations whose visitor waits for an answer. */
  unanswered?: boolean
  tag?: string
}

/** Age in milliseconds of the oldest messages that `reconcile` reads, at once. The follower finds older ones. */
const reconcileMs = 10 * 60_000
const repairedAtOnce = 1000
/** Minimum time between two writes. Otherwise each message of a busy conversation would cause a write. */
const paceMs = 500
const maxPage = 100
const defaultPage = 50
const maxCounted = 1000

const placeOf = ({ workspaceId = '', unanswered = false }: ListQuery) => `conversations ${unanswered} ${workspaceId}`

const endIn =
  ({ unanswered }: ListQuery) =>
  ({ lastMessageAt, queue, conversationId }: Conversation) => ({
    at: (unanswered ? queue?.waitingSince : lastMessageAt)!,
    id: conversationId,
  })

/** Latest activity of a conversation, for the inbox. */
type Activity = Required<Pick<Conversation, 'conversationId' | 'lastMessageAt' | 'lastSequence' | 'queue'>> &
  Pick<Conversation, 'botAuthor'> &
  Pick<ConversationDocument, 'lastSession' | 'unseenAt'>

/** Maintains the operators' list of conversations from the log. */
export const inboxOf = perCore((core) => {
  let queued = new Map<string, Activity>()

  function note(event: LogEvent, activities = queued) {
    const { conversationId, sequence, occurredAt, message } = event
    const earlier = activities.get(conversationId)
    if (earlier && earlier.lastSequence >= sequence) return
    const sessionId = message?.sessionId ?? event.sessionId
    const lastSession = sessionId === undefined ? earlier?.lastSession : { sequence, sessionId }
    const unseenAt =
      earlier?.unseenAt ??
      (event.type === 'message.received' ? new Date(occurredAt.getTime() + firstLookMs) : undefined)
    const botAuthor = botAuthorOf(event) ?? earlier?.botAuthor
    activities.set(conversationId, {
      conversationId,
      lastMessageAt: occurredAt,
      lastSequence: sequence,
      lastSession,
      botAuthor,
      queue: queuePlaceOf(event),
      unseenAt,
    })
  }

  const writing = createSingleFlight(
    () => queued.size > 0,
    async () => {
      const activities = [...queued.values()]
      queued = new Map()
      try {
        await recordActivity(core, activities)
      } catch (error) {
        logFailure(core.logger, 'inbox update failed; reconciliation will repeat it')(error)
      }
    },
    { paceMs },
  )

  /** Writes only what the list lacks. Otherwise each answer would be checked again for whether the visitor has seen it. */
  async function repair(events: LogEvent[]) {
    const ids = events.map(({ conversationId }) => conversationId)
    const fields = { projection: { queue: 1, lastSequence: 1 } } as const
    const known = byKey(await core.db.conversations.find({ _id: { $in: ids } }, fields).toArray(), ({ _id }) => _id)
    const activities: typeof queued = new Map()
    const changes: StatusChange[] = []
    for (const event of events.filter(isActivity)) {
      const { conversationId, sequence } = event
      const { queue, lastSequence = 0 } = known.get(conversationId) ?? {}
      if (isEntry(event)) sequence > lastSequence && note(event, activities)
      else if (isRating(event)) changes.push({ conversationId, rating: ratingOf(event) })
      else if (sequence > (queue?.sequence ?? 0)) changes.push({ conversationId, queue: queuePlaceOf(event) })
    }
    if (activities.size > 0) await recordActivity(core, [...activities.values()])
    if (changes.length > 0) await recordStatus(core, changes)
  }

  async function reconcile() {
    const found: LogEvent[] = []
    for await (const event of eventsOf(core).activitySince(dateOf(core, -reconcileMs)))
      if (found.push(event) === repairedAtOnce) await repair(found.splice(0))
    await repair(found)
  }

  const follower = createLogFollower(core, { name: 'inbox', handle: repair })

  // A gap can mean that the database was unavailable, so that writes of the inbox have failed.
  core.bus.on('gap', () => {
    reconcile().catch(logFailure(core.logger, 'inbox reconciliation failed; will run again'))
  })

  return {
    /** Queues a message or a form. Never waits or fails, because `reconcile` repairs missed messages. */
    record(event: LogEvent) {
      note(event)
      void writing.run()
    },
    /** Records recent messages again, including messages of a crashed process. */
    reconcile,
    /** Records the events that a dead or stopped process has not recorded, some time after they were written. */
    catchUp: follower.catchUp,
    /** Resolves when the write of each message queued before this call has succeeded or failed. */
    noted: writing.caughtUp,
    drain: writing.settled,
  }
})

export async function recordActivity({ db }: Core, activities: Activity[]) {
  await db.conversations.bulkWrite(
    activities.map(({ conversationId, unseenAt, ...activity }) => ({
      updateOne: {
        // `$max` makes the order of updates irrelevant. A filter with a condition would cost three times as much.
        filter: { _id: conversationId },
        update: { $max: activity, ...(unseenAt && { $min: { unseenAt } }) },
      },
    })),
    // These fields are derived from the log and repaired after a fault, so the journal is not awaited.
    { ordered: false, writeConcern: { w: 1 } },
  )
}

/**
 * Returns a page of conversations, the latest first. A list of unanswered conversations begins with the one
 * that has waited longest. Errors: `ValidationFailed`.
 */
export async function listConversations(
  core: Core,
  { limit = defaultPage, pageToken, ...query }: ListQuery & PageRequest,
): Promise<{ conversations: Conversation[]; nextPageToken?: string }> {
  validate(field('/limit', limit, integer(1, maxPage)), tagIssue(query.tag))
  const after = readPageToken(placeOf(query), pageToken)
  // The list must include each message that this process accepted before this call.
  await inboxOf(core).noted()
  const found = await readList(core, query, after, limit + 1)
  const { page, nextPageToken } = cutPage(found, limit, placeOf(query), endIn(query))
  return { conversations: page, nextPageToken }
}

export const pageTokenAfter = (conversation: Conversation, query: ListQuery): string =>
  pageTokenOf(placeOf(query), endIn(query)(conversation))

async function readList(
  core: Core,
  { workspaceId, status, assignee, unanswered, tag }: ListQuery,
  after: PageEnd | undefined,
  limit: number,
) {
  const time = unanswered ? 'queue.waitingSince' : 'lastMessageAt'
  const order = unanswered ? 1 : -1
  const later = order === 1 ? '$gt' : '$lt'
  // The open conversations of an agent are few, so they are sorted in memory.
  const isShort = status === 'open' && assignee !== undefined && !unanswered
  const hint = unanswered ? 'by_waiting' : isShort ? openIndexOf(assignee) : tag ? 'by_tag' : undefined
  const found = core.db.conversations.find(
    {
      workspaceId,
      $expr: status && (status === 'closed' ? isClosed : { $not: [isClosed] }),
      ...assignedTo(assignee),
      ...(isShort && { 'queue.open': true as const }),
      ...(tag !== undefined && { 'tags.names': tag }),
      [time]: { $exists: true },
      ...notErasing,
      $or: after && [{ [time]: { [later]: after.at } }, { [time]: after.at, _id: { [later]: after.id } }],
    },
    { ...withoutNotes, hint, sort: { [time]: order, _id: order }, limit },
  )
  return (await found.toArray()).map((document) => conversationOf(core, document))
}

/** Counts the open conversations of a workspace in the queues of an agent, each up to `maxCounted`. */
export async function countQueues(core: Core, workspaceId: string, assignee: Assignee) {
  await inboxOf(core).noted()
  const counted = (filter: Filter<ConversationDocument>, hint: string) =>
    core.db.conversations.countDocuments({ workspaceId, ...notErasing, ...filter }, { limit: maxCounted, hint })
  const open = (of?: Assignee) =>
    counted({ 'queue.open': true, lastMessageAt: { $exists: true }, ...assignedTo(of) }, openIndexOf(of))
  const [unanswered, mine, unassigned, all] = await Promise.all([
    counted({ 'queue.waitingSince': { $exists: true } }, 'by_waiting'),
    open(assignee),
    open(null),
    open(),
  ])
  return { unanswered, mine, unassigned, open: all }
}

/** A conversation is closed if neither a message nor a reopening follows its last closing. */
const isClosed = {
  $and: [{ $gt: ['$closedSequence', '$lastSequence'] }, { $gte: ['$closedSequence', '$queue.sequence'] }],
}

const assignedTo = (assignee: Assignee | undefined) =>
  assignee === undefined
    ? {}
    : assignee && 'operator' in assignee
      ? { 'assignment.operator': assignee.operator }
      : { 'assignment.agent.displayName': assignee?.name ?? null }

const openIndexOf = (assignee: Assignee | undefined) =>
  assignee && 'operator' in assignee ? 'by_assignee' : 'by_openness'
