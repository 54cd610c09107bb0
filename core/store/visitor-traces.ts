import type { Collections } from './database.ts'
import type { SessionDocument } from './sessions.ts'

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
   * A verified visitor's sessions, and what was done anonymously in the browsers of these; of sessions, those that had begun
   * by then. With `known`, what was found before, what has come to it since is found too, also where its session is gone.
   */
  find(visitor: VisitorName, until: Date, known?: VisitorTraces): Promise<VisitorTraces>
}

export function createVisitorTraceStore({ sessions, commands, leads }: Collections): VisitorTraceStore {
  const part = {
    projection: { visitorId: 1, conversationId: 1, formerConversationIds: 1 },
  } as const

  return {
    async find({ browserIds, subjectIds }, until, known = noTraces()) {
      const begun = { createdAt: { $lte: until } }
      const verified = await sessions.find({ 'identity.subjectId': { $in: subjectIds }, ...begun }, part).toArray()
      const browsers = unique([...browserIds, ...known.visitorIds, ...verified.map(({ visitorId }) => visitorId)])
      const anonymous = await sessions
        .find({ visitorId: { $in: browsers }, identity: { $exists: false }, ...begun }, part)
        .toArray()
      const found: Pick<SessionDocument, '_id' | 'conversationId' | 'formerConversationIds'>[] = [
        ...verified,
        ...anonymous,
      ]
      const sessionIds = unique([...known.sessionIds, ...found.map(({ _id }) => _id)])
      const conversationIds = unique([
        ...known.conversationIds,
        ...found.flatMap(({ conversationId, formerConversationIds = [] }) => [
          conversationId,
          ...formerConversationIds,
        ]),
      ])
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
