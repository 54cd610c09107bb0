import type { Core } from '../core.ts'
import { findIds, idsOf } from '../mongodb/with-id.ts'
import { noTraces, type VisitorName, type VisitorTraces } from './model.ts'

/** Returns the files of screenshots, also those of unfinished uploads. */
export async function filesOf({ db }: Core, sessionIds: string[]): Promise<string[]> {
  const theirs = { sessionId: { $in: sessionIds } }
  const found = await db.commands.find(theirs, { projection: { uploads: 1, screenshot: 1 } }).toArray()
  return found.flatMap(({ uploads, screenshot }) =>
    [...uploads, ...(screenshot ? [screenshot] : [])].map(({ fileId }) => fileId),
  )
}

const part = { projection: { visitorId: 1, conversationId: 1 } } as const

/**
 * Finds the sessions that began at `until` or earlier, with anonymous ones in a verified visitor's
 * browsers, and all sessions in their conversations. Skips those that began after the start of `erasureId`.
 * The result includes `known`, even if these sessions were removed.
 */
export async function findTraces(
  core: Core,
  { browserIds, subjectIds }: VisitorName,
  { until, erasureId }: { until: Date; erasureId?: string },
  known: VisitorTraces = noTraces(),
): Promise<VisitorTraces> {
  const { sessions, leads } = core.db
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
  // Sessions that are anonymous now, or were when the erasure began.
  const anonymous = [
    { identity: { $exists: false } },
    ...(erasureId === undefined ? [] : [{ joinedAfterErasures: erasureId }]),
  ]
  const inBrowsers = await sessions.find({ visitorId: { $in: browsers }, ...begun, $or: anonymous }, part).toArray()
  const found = [...verified, ...inBrowsers]
  const conversationIds = unique([...known.conversationIds, ...found.map(({ conversationId }) => conversationId)])
  const inThem = await findIds(sessions, { conversationId: { $in: conversationIds } })
  const sessionIds = unique([...known.sessionIds, ...idsOf(found), ...inThem])
  const visitorIds = unique([...subjectIds, ...browsers])
  const ofThem = [{ conversationId: { $in: conversationIds } }, { visitorIds: { $in: visitorIds } }]
  const leadIds = await findIds(leads, { $or: ofThem })
  return { sessionIds, visitorIds, conversationIds, leadIds, fileIds: await filesOf(core, sessionIds) }
}

const unique = (ids: string[]) => [...new Set(ids)]
