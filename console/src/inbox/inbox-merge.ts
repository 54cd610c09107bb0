import {
  type Conversation,
  ConversationStatus,
  type InboxEvent,
  type Message,
} from '#proto/messaging/v1/messaging_pb.js'
import { stateRank, withdrawn } from '../conversation/messages/message-merge.ts'
import { millisecondsOf } from '../time.ts'

/** A conversation in the inbox list. */
export interface InboxEntry {
  conversation: Conversation
  /**
   * Revision of the inbox stream at the last change of this entry. A list response with an earlier
   * revision does not overwrite the entry.
   */
  revision: number
  /**
   * Time at which the visitor started typing, in milliseconds since the epoch. The typing indicator
   * expires after `typingLastsMs`.
   */
  typingSince?: number
}

export type Entries = ReadonlyMap<string, InboxEntry>

/** How long a typing indicator is shown without a new event, in milliseconds. */
export const typingLastsMs = 9000

/**
 * Merges one page of the list. `listRevision` is the revision of the inbox stream at the time of
 * the request.
 */
export function mergeList(entries: Entries, listed: Conversation[], listRevision: number): Entries {
  const merged = new Map(entries)
  for (const conversation of listed) {
    const known = merged.get(conversation.conversationId)
    merged.set(
      conversation.conversationId,
      known ? mergeListed(known, conversation, listRevision) : { conversation, revision: 0 },
    )
  }
  return merged
}

function mergeListed(known: InboxEntry, listed: Conversation, listRevision: number): InboxEntry {
  const listIsNewer = known.revision <= listRevision && listed.lastSequence >= known.conversation.lastSequence
  const base = listIsNewer ? listed : known.conversation
  return {
    ...known,
    conversation: {
      ...base,
      visitor: listed.visitor ?? known.conversation.visitor,
      canRequestRating: listed.canRequestRating || known.conversation.canRequestRating,
      contact: listed.contact ?? known.conversation.contact,
      lastMessage: latest(known.conversation.lastMessage, listed.lastMessage),
    },
  }
}

/** Merges a change from the stream: the state of a conversation and its events. */
export function mergeChange(
  entries: Entries,
  change: { conversation: Conversation; events: InboxEvent[] },
  revision: number,
): Entries {
  const { conversation, events } = change
  const known = entries.get(conversation.conversationId)
  if (conversation.lastSequence === 0 && !known) return entries
  let entry: InboxEntry = {
    ...known,
    revision,
    conversation: {
      ...conversation,
      lastSequence: Math.max(conversation.lastSequence, known?.conversation.lastSequence ?? 0),
      ...summaryOf(known?.conversation),
    },
  }
  for (const event of events) entry = applyEvent(entry, event)
  return new Map(entries).set(conversation.conversationId, entry)
}

/**
 * Returns the fields that only lists and `GetConversation` contain. Changes from the stream and
 * answers to other calls lack these fields, so a merge must keep the known values.
 */
export function summaryOf(known: Conversation | undefined): Partial<Conversation> {
  const { visitor, contact, lastMessage, canRequestRating = false } = known ?? {}
  return { visitor, contact, lastMessage, canRequestRating }
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
    case 'message.redacted': {
      if (!lastMessage || lastMessage.messageId !== event.messageId) return entry
      return {
        ...entry,
        conversation: { ...entry.conversation, lastMessage: withdrawn(lastMessage, event.occurredAt) },
      }
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

/**
 * Returns the later of two messages. If both are the same message, returns the one in the later
 * state.
 */
function latest(one: Message | undefined, other: Message | undefined): Message | undefined {
  if (!one || !other) return one ?? other
  if (one.sequence !== other.sequence) return one.sequence > other.sequence ? one : other
  return stateRank(one.state) > stateRank(other.state) ? one : other
}

/**
 * Returns true if the last message is from the visitor and has not been read, or if the conversation
 * waits for a person.
 */
export function isUnread(entry: InboxEntry): boolean {
  const { lastMessage } = entry.conversation
  return (lastMessage?.author?.kind === 'visitor' && lastMessage.state !== 'read') || isWaiting(entry)
}

/** Returns true from a bot's request for a person until an agent is assigned or answers. */
export function isWaiting({ conversation: { bot, agent, lastMessage, status } }: InboxEntry): boolean {
  const isTaken = agent !== undefined || lastMessage?.author?.kind === 'agent'
  return bot?.humanRequestedAt !== undefined && !isTaken && status !== ConversationStatus.CLOSED
}

/** A list of the inbox. All but `closed` have open conversations only. */
export type Queue = 'unanswered' | 'mine' | 'unassigned' | 'open' | 'closed'

/** Returns the entries of a queue: the longest waiting first if unanswered, else the latest message first. */
export function selectEntries(entries: Entries, queue: Queue, me: string, tag = ''): InboxEntry[] {
  const order = queue === 'unanswered' ? 1 : -1
  const place = ({ conversation: { waitingSince, lastMessageAt, conversationId } }: InboxEntry) =>
    [millisecondsOf(queue === 'unanswered' ? waitingSince : lastMessageAt), conversationId] as const
  return [...entries.values()]
    .filter(({ conversation: { status, waitingSince, agent, tags } }) => {
      if (tag !== '' && !tags.includes(tag)) return false
      if ((status === ConversationStatus.CLOSED) !== (queue === 'closed')) return false
      if (queue === 'unanswered') return waitingSince !== undefined
      if (queue === 'mine') return agent?.displayName === me
      return queue !== 'unassigned' || agent === undefined
    })
    .sort((one, other) => {
      const [[at, id], [otherAt, otherId]] = [place(one), place(other)]
      return order * (at - otherAt || (id > otherId ? 1 : -1))
    })
}

type Named = Pick<Conversation, 'visitor' | 'conversationId'> & Partial<Pick<Conversation, 'contact'>>

/**
 * Returns the name of a verified visitor, the name or address that an anonymous visitor left in a
 * form, or a generated name.
 */
export function visitorName({ visitor, contact, conversationId }: Named): string {
  const given = visitor?.displayName || visitor?.externalSubject || contact?.name || contact?.email
  return given || `Visitor ${conversationId.slice(-4).toUpperCase()}`
}
