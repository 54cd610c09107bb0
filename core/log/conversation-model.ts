import type { Agent, LogEvent } from '../log-event.ts'

export interface Conversation {
  conversationId: string
  workspaceId: string
  connectionId: string
  /** Identity of the event log. Positions from a log with another epoch are invalid. */
  epoch: string
  createdAt: Date
  /** These fields are for the inbox. They are derived from the log and may lag behind it. */
  lastMessageAt?: Date
  lastSequence?: number
  lastSessionId?: string
  status?: 'open' | 'closed'
  /** Sequence of the event that last closed the conversation. */
  closedSequence?: number
  queue?: QueuePlace
  assignment?: Announced & {
    agent?: Agent
    operator?: string
    /** Agent who was assigned before the last change. */
    previous?: Agent
  }
  /** Whether bots may act in a conversation. Absent if they have never been stopped. */
  bots?: Announced & {
    isStopped: boolean
    /** The request for a person, by a bot or the visitor, if it stopped the bots. */
    request?: { operationId: string; inputHash: string; bot?: Agent; at: Date }
  }
  /** The visitor's latest rating, with the sequence of its event. The comment is in the event only. */
  rating?: StoredRating
  /** A conversation that never had a tag has no such object. */
  tags?: Announced & {
    /** Ordered by the time at which they were added. */
    names: string[]
    /** The last change. */
    tag: string
    isAdded: boolean
    at: Date
  }
  /** The bot that last wrote, with the sequence of its message. */
  botAuthor?: { sequence: number; bot: Agent }
  /** A mail to the visitor with answers that no device has shown: one for each absence. */
  mail?: {
    /** The oldest of the answers. */
    messageId: string
    /** `sending` is final if the process or the connection has ended: nobody knows the outcome. */
    state: 'waiting' | 'sending' | 'sent' | 'refused' | 'dropped'
    at: Date
    /** Time of the next attempt. Set in the state `waiting` only. */
    dueAt?: Date
    attempts: number
  }
  /** Set if the visitor wants no more mails for this conversation. */
  noMails?: true
}

/** The state of a conversation for operators' queues, after one event of its log. */
export interface QueuePlace {
  /** Sequence of the event. A lower sequence never replaces a higher one. */
  sequence: number
  open?: true
  /** Time since when the visitor waits for an answer. Set only while the conversation is open. */
  waitingSince?: Date
}

/** Returns the place after a message, a closing or a reopening. */
export function queuePlaceOf({ sequence, closed, waitingSince }: LogEvent): QueuePlace {
  return closed ? { sequence } : { sequence, open: true, ...(waitingSince && { waitingSince }) }
}

/** Fields of a conversation whose changes are events of its log. */
export type AnnouncedField = 'assignment' | 'bots' | 'tags'

export interface Announced {
  /** Number of changes so far. */
  version: number
  /** True when the log has the event of this version. */
  announced: boolean
}

export interface StoredRating {
  sequence: number
  score: number
}

/** A note of an operator. Visitors never see notes. */
export interface Note {
  noteId: string
  /** Id that the operator's client chose; unique in the conversation. */
  operationId: string
  inputHash: string
  author: Agent
  body: string
  createdAt: Date
}
