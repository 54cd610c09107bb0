import {
  type Conversation,
  ConversationStatus,
  type InboxEvent,
  type Message,
} from '#proto/messaging/v1/messaging_pb.js'
import { stateRank } from '../conversation/message-merge.ts'

/** A conversation as the list shows it, and when the stream last told of it. */
export interface InboxEntry {
  conversation: Conversation
  /** Counts the stream's changes: a list that was asked for before one does not take it back. */
  toldAt: number
  /** Since when the visitor types, in milliseconds; a start that is not renewed ends by itself. */
  typingSince?: number
}

export type Entries = ReadonlyMap<string, InboxEntry>

/** How long a start of typing counts, in milliseconds. */
export const typingLastsMs = 9000

/** A page of the list. `askedAt` is the stream's count when the list was asked for. */
export function mergeList(entries: Entries, listed: Conversation[], askedAt: number): Entries {
  const merged = new Map(entries)
  for (const conversation of listed) {
    const known = merged.get(conversation.conversationId)
    merged.set(
      conversation.conversationId,
      known ? mergeListed(known, conversation, askedAt) : { conversation, toldAt: 0 },
    )
  }
  return merged
}

function mergeListed(known: InboxEntry, listed: Conversation, askedAt: number): InboxEntry {
  const listIsNewer = known.toldAt <= askedAt && listed.lastSequence >= known.conversation.lastSequence
  const base = listIsNewer ? listed : known.conversation
  return {
    ...known,
    conversation: {
      ...base,
      visitor: listed.visitor ?? known.conversation.visitor,
      lastMessage: latest(known.conversation.lastMessage, listed.lastMessage),
    },
  }
}

/** What the stream tells of one conversation: how it is, and what happened. */
export function mergeChange(
  entries: Entries,
  change: { conversation: Conversation; events: InboxEvent[] },
  toldAt: number,
): Entries {
  const { conversation, events } = change
  const known = entries.get(conversation.conversationId)
  if (conversation.lastSequence === 0 && !known) return entries
  let entry: InboxEntry = {
    ...known,
    toldAt,
    conversation: {
      ...conversation,
      lastSequence: Math.max(conversation.lastSequence, known?.conversation.lastSequence ?? 0),
      // Nobody writes in another's place: whoever wrote last may be another session of the visitor, with the same name.
      visitor: known?.conversation.visitor,
      lastMessage: known?.conversation.lastMessage,
    },
  }
  for (const event of events) entry = applyEvent(entry, event)
  return new Map(entries).set(conversation.conversationId, entry)
}

function applyEvent(entry: InboxEntry, event: InboxEvent): InboxEntry {
  const { lastMessage } = entry.conversation
  if (event.message) {
    const { typingSince, ...rest } = entry
    const conversation = { ...entry.conversation, lastMessage: latest(lastMessage, event.message) }
    const stillTyping = event.message.author?.kind !== 'visitor' && typingSince !== undefined
    return { ...rest, conversation, ...(stillTyping && { typingSince }) }
  }
  switch (event.type) {
    case 'message.state.changed': {
      if (!lastMessage || lastMessage.messageId !== event.messageId || event.state === undefined) return entry
      if (stateRank(event.state) <= stateRank(lastMessage.state)) return entry
      return { ...entry, conversation: { ...entry.conversation, lastMessage: { ...lastMessage, state: event.state } } }
    }
    case 'typing.started':
      return event.author?.kind === 'visitor' ? { ...entry, typingSince: millisecondsOf(event.occurredAt) } : entry
    case 'typing.stopped': {
      if (event.author?.kind !== 'visitor') return entry
      const { typingSince: _, ...rest } = entry
      return rest
    }
    default:
      return entry
  }
}

/** Of two messages the later one; of the same one the state that is further. */
function latest(one: Message | undefined, other: Message | undefined): Message | undefined {
  if (!one || !other) return one ?? other
  if (one.sequence !== other.sequence) return one.sequence > other.sequence ? one : other
  return stateRank(one.state) > stateRank(other.state) ? one : other
}

/** The visitor said the last word, and nobody has read it. */
export function isUnread({ conversation: { lastMessage } }: InboxEntry): boolean {
  return lastMessage?.author?.kind === 'visitor' && lastMessage.state !== 'read'
}

export interface InboxFilter {
  status: 'open' | 'closed' | 'all'
  mine: boolean
  text: string
}

/** The entries that a filter lets through, the one with the latest message first. */
export function selectEntries(entries: Entries, { status, mine, text }: InboxFilter, me: string): InboxEntry[] {
  const wanted = text.trim().toLowerCase()
  return [...entries.values()]
    .filter(({ conversation }) => {
      const closed = conversation.status === ConversationStatus.CLOSED
      if (status !== 'all' && closed !== (status === 'closed')) return false
      if (mine && conversation.agent?.displayName !== me) return false
      return wanted === '' || searchable(conversation).includes(wanted)
    })
    .sort((one, other) => {
      const late = millisecondsOf(other.conversation.lastMessageAt) - millisecondsOf(one.conversation.lastMessageAt)
      return late || (other.conversation.conversationId > one.conversation.conversationId ? 1 : -1)
    })
}

const searchable = (conversation: Conversation) =>
  [
    visitorName(conversation),
    conversation.visitor?.externalSubject ?? '',
    conversation.lastMessage?.body ?? '',
    conversation.agent?.displayName ?? '',
    conversation.conversationId,
  ]
    .join('\n')
    .toLowerCase()

/** The name of a verified visitor, or one by which an anonymous one can be told from the others. */
export function visitorName({ visitor, conversationId }: Pick<Conversation, 'visitor' | 'conversationId'>): string {
  return visitor?.displayName || visitor?.externalSubject || `Visitor ${conversationId.slice(-4).toUpperCase()}`
}

function millisecondsOf(time: { seconds: bigint; nanos: number } | undefined): number {
  return time ? Number(time.seconds) * 1000 + Math.floor(time.nanos / 1_000_000) : 0
}
