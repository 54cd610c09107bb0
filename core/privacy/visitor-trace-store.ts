import type { Collection } from 'mongodb'
import type { CommandDocument } from '../commands/command-store.ts'
import { noTraces, type VisitorName, type VisitorTraces } from './model.ts'
import type { PrivacyCollections } from './visitor-data-store.ts'

/** Returns the ids of the screenshot files of sessions, including unfinished uploads. */
export async function filesOf(commands: Collection<CommandDocument>, sessionIds: string[]): Promise<string[]> {
  const theirs = { sessionId: { $in: sessionIds } }
  const found = await commands.find(theirs, { projection: { uploads: 1, screenshot: 1 } }).toArray()
  return found.flatMap(({ uploads, screenshot }) =>
    [...uploads, ...(screenshot ? [screenshot] : [])].map(({ fileId }) => fileId),
  )
}

export function createVisitorTraceStore({ sessions, commands, leads }: PrivacyCollections) {
  const part = {
    projection: { visitorId: 1, conversationId: 1 },
  } as const

  return {
    /**
     * Finds the visitor's sessions that began at `until` or earlier, including anonymous sessions in
     * a verified visitor's browsers. Also finds all sessions in the same conversations. With
     * `erasureId`, skips sessions that began after the start of this erasure. With `known`, the
     * result also contains these traces of an earlier call, even if their sessions have since been
     * removed.
     */
    async find(
      { browserIds, subjectIds }: VisitorName,
      { until, erasureId }: { until: Date; erasureId?: string },
      known: VisitorTraces = noTraces(),
    ): Promise<VisitorTraces> {
      const notAfterErasure = erasureId === undefined ? undefined : { $ne: erasureId }
      const begun = { createdAt: { $lte: until }, afterErasures: notAfterErasure }
      const verified = await sessions
        .find({ 'identity.subjectId': { $in: subjectIds }, ...begun, joinedAfterErasures: notAfterErasure }, part)
        .toArray()
      const linked = await sessions.find({ linkedSubjectIds: { $in: subjectIds }, ...begun }, part).toArray()
      const browsers = unique([
        ...browserIds,
        ...known.visitorIds,
        ...[...verified, ...linked].map(({ visitorId }) => visitorId),
      ])
      // Matches sessions that are anonymous, or were anonymous when the erasure began.
      const anonymous = [
        { identity: { $exists: false } },
        ...(erasureId === undefined ? [] : [{ joinedAfterErasures: erasureId }]),
      ]
      const inBrowsers = await sessions.find({ visitorId: { $in: browsers }, ...begun, $or: anonymous }, part).toArray()
      const found = [...verified, ...inBrowsers]
      const conversationIds = unique([...known.conversationIds, ...found.map(({ conversationId }) => conversationId)])
      const inThem = await sessions
        .find({ conversationId: { $in: conversationIds } }, { projection: { _id: 1 } })
        .toArray()
      const sessionIds = unique([...known.sessionIds, ...[...found, ...inThem].map(({ _id }) => _id)])
      const visitorIds = unique([...subjectIds, ...browsers])
      const ofThem = [{ conversationId: { $in: conversationIds } }, { visitorIds: { $in: visitorIds } }]
      const foundLeads = await leads.find({ $or: ofThem }, { projection: { _id: 1 } }).toArray()
      const leadIds = foundLeads.map(({ _id }) => _id)
      return { sessionIds, visitorIds, conversationIds, leadIds, fileIds: await filesOf(commands, sessionIds) }
    },
  }
}

export type VisitorTraceStore = ReturnType<typeof createVisitorTraceStore>

function unique(ids: string[]): string[] {
  return [...new Set(ids)]
}
