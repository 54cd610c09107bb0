import type { Collections } from '../database/database.ts'
import type { SessionDocument } from '../visitors/session-store.ts'

/** The ids of a visitor: browsers of an anonymous one, or subjects of a verified one. */
export interface VisitorName {
  workspaceId: string
  browserIds: string[]
  subjectIds: string[]
}

/** Ids of all data of a visitor. */
export interface VisitorTraces {
  sessionIds: string[]
  /** Browsers and subjects. */
  visitorIds: string[]
  conversationIds: string[]
  commandIds: string[]
  leadIds: string[]
  /** Files of screenshots, including unfinished uploads. */
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

export interface VisitorTraceStore {
  /**
   * Finds the sessions of the visitor that began by `until`, including anonymous ones in a verified
   * visitor's browsers. It also finds all sessions in the same conversations. Sessions that began
   * after the erasure are skipped. With `known`, the result extends earlier traces, even if their
   * sessions are removed.
   */
  find(visitor: VisitorName, by: { until: Date; erasureId?: string }, known?: VisitorTraces): Promise<VisitorTraces>
}

export function createVisitorTraceStore({ sessions, commands, leads }: Collections): VisitorTraceStore {
  const part = {
    projection: { visitorId: 1, conversationId: 1, formerConversationIds: 1 },
  } as const

  return {
    async find({ browserIds, subjectIds }, { until, erasureId }, known = noTraces()) {
      const begun = {
        createdAt: { $lte: until },
        ...(erasureId !== undefined && { afterErasures: { $ne: erasureId } }),
      }
      const joined = erasureId === undefined ? {} : { joinedAfterErasures: { $ne: erasureId } }
      const verified = await sessions
        .find({ 'identity.subjectId': { $in: subjectIds }, ...begun, ...joined }, part)
        .toArray()
      const browsers = unique([...browserIds, ...known.visitorIds, ...verified.map(({ visitorId }) => visitorId)])
      // Sessions that are anonymous, or were anonymous when the erasure began.
      const anonymous = [
        { identity: { $exists: false } },
        ...(erasureId === undefined ? [] : [{ joinedAfterErasures: erasureId }]),
      ]
      const inBrowsers = await sessions.find({ visitorId: { $in: browsers }, ...begun, $or: anonymous }, part).toArray()
      const found: Pick<SessionDocument, '_id' | 'conversationId' | 'formerConversationIds'>[] = [
        ...verified,
        ...inBrowsers,
      ]
      const conversationIds = unique([
        ...known.conversationIds,
        ...found.flatMap(({ conversationId, formerConversationIds = [] }) => [
          conversationId,
          ...formerConversationIds,
        ]),
      ])
      const inThem = await sessions
        .find({ conversationId: { $in: conversationIds } }, { projection: { _id: 1 } })
        .toArray()
      const sessionIds = unique([...known.sessionIds, ...[...found, ...inThem].map(({ _id }) => _id)])
      const [foundCommands, foundLeads] = await Promise.all([
        commands.find({ sessionId: { $in: sessionIds } }, { projection: { uploads: 1, screenshot: 1 } }).toArray(),
        leads.find({ conversationId: { $in: conversationIds } }, { projection: { _id: 1 } }).toArray(),
      ])
      return {
        sessionIds,
        visitorIds: unique([...subjectIds, ...browsers]),
        conversationIds,
        commandIds: foundCommands.map(({ _id }) => _id),
        leadIds: foundLeads.map(({ _id }) => _id),
        fileIds: foundCommands.flatMap(({ uploads, screenshot }) => [
          ...uploads.map(({ fileId }) => fileId),
          ...(screenshot ? [screenshot.fileId] : []),
        ]),
      }
    },
  }
}

function unique(ids: string[]): string[] {
  return [...new Set(ids)]
}
