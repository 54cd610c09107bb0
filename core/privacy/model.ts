/**
 * Ids of a visitor: the browsers of an anonymous visitor, or the `Subject` ids of a verified one.
 */
export interface VisitorName {
  workspaceId: string
  browserIds: string[]
  subjectIds: string[]
}

/** Ids of all data of a visitor. */
export interface VisitorTraces {
  sessionIds: string[]
  /** Ids of the visitor: browsers and, if verified, `Subject` ids. */
  visitorIds: string[]
  conversationIds: string[]
  commandIds: string[]
  leadIds: string[]
  /** Ids of screenshot files, including unfinished uploads. */
  fileIds: string[]
}

export const noTraces = (): VisitorTraces => ({
  sessionIds: [],
  visitorIds: [],
  conversationIds: [],
  commandIds: [],
  leadIds: [],
  fileIds: [],
})

export type ErasureStage = 'ending' | 'removing' | 'removed' | 'finished'

/** The erasure of one visitor. The record of a finished erasure does not identify the visitor. */
export interface Erasure {
  erasureId: string
  workspaceId: string
  stage: ErasureStage
  requestedBy: string
  requestedAt: Date
  finishedAt?: Date
}

/** An unfinished erasure, as the core that holds its lease reads it. */
export interface OpenErasure extends Erasure {
  visitor: VisitorName
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
  /** Number of the lease. A core whose number is outdated can no longer write. */
  fencingToken: number
}
