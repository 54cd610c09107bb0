/** Ids of one visitor in a workspace. */
export interface VisitorIds {
  /** Ids under which a ban in the whole workspace is stored: of the browser and of the subject. */
  workspaceIds: string[]
  /** Ids of the browser and the subject on the session's connection. */
  connectionIds: string[]
  /** Ids of the browser on each connection. */
  browserIds: string[]
  /** Ids of the verified subject on each connection. */
  subjectIds: string[]
}

/** Returns all ids under which a ban of the visitor may be stored, on any connection. */
export const allIdsOf = ({ workspaceIds, browserIds, subjectIds }: VisitorIds): string[] => [
  ...workspaceIds,
  ...browserIds,
  ...subjectIds,
]
