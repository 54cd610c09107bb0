import type { Collections } from '../database/database.ts'
import type { SessionDocument } from '../visitors/session-store.ts'

/** A visitor, by what they are known by: the browsers of an anonymous one, or a verified one's subjects. */
export interface VisitorName {
  workspaceId: string
  browserIds: string[]
  subjectIds: string[]
}

/** Where everything of a visitor is. */
export interface VisitorTraces {
  sessionIds: string[]
  /** Browsers and subjects. */
  visitorIds: string[]
  conversationIds: string[]
  commandIds: string[]
  leadIds: string[]
  /** Of screenshots, also of those that are still being uploaded. */
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
   * A verified visitor's sessions, and what was done anonymously in the browsers of these: of sessions, those that had
   * begun by `until`, and all that are in the same conversations. An erasure leaves out what began after it. With `known`,
   * what was found before, what has come to it since is found too, also where its session is gone.
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
      // Anonymous ones, and those that were so when the erasure began.
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
      const [theirCommands, theirLeads] = await Promise.all([
        commands.find({ sessionId: { $in: sessionIds } }, { projection: { uploads: 1, screenshot: 1 } }).toArray(),
        leads.find({ conversationId: { $in: conversationIds } }, { projection: { _id: 1 } }).toArray(),
      ])
      return {
        sessionIds,
        visitorIds: unique([...subjectIds, ...browsers]),
        conversationIds,
        commandIds: theirCommands.map(({ _id }) => _id),
        leadIds: theirLeads.map(({ _id }) => _id),
        fileIds: theirCommands.flatMap(({ uploads, screenshot }) => [
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
