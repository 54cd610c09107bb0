import { conversationFactsMs } from '../conversations/model.ts'

/** The browsers of an anonymous visitor, or the `Subject` ids of a verified one. */
export interface VisitorName {
  workspaceId: string
  browserIds: string[]
  subjectIds: string[]
}

export interface VisitorTraces {
  sessionIds: string[]
  /** Browsers and, if verified, `Subject` ids. */
  visitorIds: string[]
  conversationIds: string[]
  leadIds: string[]
  /** Files of screenshots. An upload may write to its file after the command was removed. */
  fileIds: string[]
}

export const noTraces = (): VisitorTraces => ({
  sessionIds: [],
  visitorIds: [],
  conversationIds: [],
  leadIds: [],
  fileIds: [],
})

/** The record of a finished erasure does not identify the visitor. */
export interface Erasure {
  erasureId: string
  workspaceId: string
  stage: 'ending' | 'removing' | 'removed' | 'finished'
  requestedBy: string
  requestedAt: Date
  finishedAt?: Date
}

export interface ErasedVisitor {
  name: VisitorName
  /** Sessions that begin later belong to a visitor who returned. Includes the clock difference of cores. */
  until: Date
  /** What to remove. The visitor's ids are set from the beginning, the others before the removal. */
  traces: VisitorTraces
  /** Whether data that calls wrote late has been removed too. New sessions then ignore the erasure. */
  isSwept: boolean
}

/**
 * Longer than any call takes. Calls that ran when their session ended, or their data was hidden, have ended.
 */
export const maxCallMs = 60_000

/** Another core may take over an unfinished step after this time. */
export const leaseMs = 30_000

/** No call uses data that has been hidden for this time, even from a cache. */
export const hiddenMs = maxCallMs + conversationFactsMs

export type DeletionKind = 'workspace' | 'connection' | 'installation' | 'subscription'
export type DataKind = 'conversations' | 'leads'
export type RemovalKind = 'visitor' | DataKind | DeletionKind

/** An erasure begins with `ending`, other removals with `marking`. An undone one has `restoring`. */
export type RemovalStage = 'ending' | 'marking' | 'checking' | 'removing' | 'removed' | 'restoring'
