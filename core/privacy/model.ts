import { conversationFactsMs } from '../conversations/model.ts'

/**
 * Ids of a visitor: the browsers of an anonymous visitor, or the `Subject` ids of a verified one.
 */
export interface VisitorName {
  workspaceId: string
  browserIds: string[]
  subjectIds: string[]
}

/** Ids by which all data of a visitor is found. */
export interface VisitorTraces {
  sessionIds: string[]
  /** Ids of the visitor: browsers and, if verified, `Subject` ids. */
  visitorIds: string[]
  conversationIds: string[]
  leadIds: string[]
  /** Ids of screenshot files. An upload may write to its file after the command was removed. */
  fileIds: string[]
}

export const noTraces = (): VisitorTraces => ({
  sessionIds: [],
  visitorIds: [],
  conversationIds: [],
  leadIds: [],
  fileIds: [],
})

/** The erasure of one visitor. The record of a finished erasure does not identify the visitor. */
export interface Erasure {
  erasureId: string
  workspaceId: string
  stage: 'ending' | 'removing' | 'removed' | 'finished'
  requestedBy: string
  requestedAt: Date
  finishedAt?: Date
}

/** What an unfinished erasure knows about its visitor. */
export interface ErasedVisitor {
  name: VisitorName
  /**
   * End of the erased period. Sessions that begin later belong to a visitor who returned.
   * This time includes the maximum clock difference of the cores.
   */
  until: Date
  /**
   * Ids of the data to remove. The ids of the visitor are set when the erasure begins. The other
   * ids are added before the data is removed.
   */
  traces: VisitorTraces
  /** Whether data was removed that calls wrote after the first pass. New sessions then ignore the erasure. */
  isSwept: boolean
}

/**
 * Time in milliseconds that is longer than any call takes. Calls that were running when their
 * session ended, or when their conversation was hidden, have finished after this time.
 */
export const maxCallMs = 60_000

/** Time in milliseconds after which another core may take over an unfinished step. */
export const leaseMs = 30_000

/**
 * Time in milliseconds after which no call uses hidden data any more. Calls that found the data
 * before it was hidden have ended by then. Such a call may have found the data in a cache.
 */
export const hiddenMs = maxCallMs + conversationFactsMs

export type DeletionKind = 'workspace' | 'connection' | 'installation' | 'subscription'
export type DataKind = 'conversations' | 'leads'
export type RemovalKind = 'visitor' | DataKind | DeletionKind

/** An erasure begins with the stage `ending`, and every other removal with `marking`. A removal that was undone has `restoring`. */
export type RemovalStage = 'ending' | 'marking' | 'checking' | 'removing' | 'removed' | 'restoring'

/** Facts that decide whether a conversation may be removed. */
export interface ConversationFacts {
  conversationId: string
  hasMessage: boolean
  hasLead: boolean
  /**
   * Latest of these times: the conversation's start, its last message, the ends of its sessions.
   */
  lastActivityAt: Date
}

const dayMs = 86_400_000

/** Returns the time before which data is older than allowed; undefined if there is no limit. */
export function cutOffOf(days: number, now: number): Date | undefined {
  return days === 0 ? undefined : new Date(now - days * dayMs)
}

/**
 * Returns whether a conversation is older than allowed. A conversation with a lead but without a
 * message has the period of a conversation with messages. The reason is that its session has the
 * visitor's consent to the lead.
 */
export function isConversationDue(
  { hasMessage, hasLead, lastActivityAt }: ConversationFacts,
  days: { conversations: number; emptySessions: number },
  now: number,
): boolean {
  const cutOff = cutOffOf(hasMessage || hasLead ? days.conversations : days.emptySessions, now)
  return cutOff !== undefined && lastActivityAt <= cutOff
}

/**
 * Time in milliseconds until the next review of data that is older than its period but kept for
 * another reason.
 */
export const postponedMs = dayMs
