import { type Core, dateOf } from '../core.ts'
import { invalid, inWorkspace, ServiceError } from '../errors.ts'
import { findIds, hasDocument } from '../mongodb/with-id.ts'
import { field, integer, text, validate } from '../rules.ts'
import type { Session } from '../sessions/model.ts'
import { sessionStoreOf } from '../sessions/session-store.ts'
import { allIdsOf, banIdsOfBrowser, banIdsOfSubject, type VisitorIds, visitorIdsOf } from '../sessions/visitor-ids.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import { banNetwork, isNetworkBanned, networkBannedUntil, networkOf } from './network-bans.ts'

export async function findSession(core: Core, sessionId: string, workspaceId?: string): Promise<Session> {
  const [session] = await sessionStoreOf(core).find([sessionId])
  return inWorkspace(session, workspaceId)
}

/**
 * Bans the browser, and the subject of a verified session. With `addressBanSeconds`, also bans the network
 * address of the session for this time. Additional errors: `ValidationFailed`.
 */
export async function banSession(
  core: Core,
  sessionId: string,
  reason: string,
  workspaceId?: string,
  addressBanSeconds?: number,
): Promise<Session> {
  const { network, ...session } = await findSession(core, sessionId, workspaceId)
  validate(
    field('/reason', reason, text(0, 512)),
    field('/addressBanSeconds', addressBanSeconds, integer(minAddressBanSeconds, maxAddressBanSeconds)),
  )
  const at = dateOf(core)
  const ids = await visitorIdsOf(core, session)
  if (addressBanSeconds !== undefined) {
    if (network === undefined) throw invalid('/addressBanSeconds', 'addressKnown')
    const until = new Date(at.getTime() + addressBanSeconds * 1000)
    await banNetwork(core, network, [...ids.workspaceIds, ...ids.connectionIds], until)
  }
  await storeBan(core, ids, { at, reason, workspaceId: session.workspaceId, connectionId: session.connectionId })
  // A session that is inserted after this write finds the ban and ends itself, without a grant. So this read
  // finds all others. The other cores are told before the sessions end, because this process may die in between.
  const unended = await unendedOf(core, ids, at)
  await wakeupsOf(core).changing([...new Set([...unended, sessionId])], () =>
    core.db.sessions.updateMany({ _id: { $in: unended }, status: 'active' }, { $set: { status: 'banned' } }),
  )
  return findSession(core, sessionId)
}

/**
 * Returns the ids of all sessions of a browser or a verified visitor that could have a valid grant at `at`,
 * also of ended ones, because the process that ended them may have sent no wake-up.
 */
async function unendedOf({ db }: Core, { browserIds, subjectIds }: VisitorIds, at: Date) {
  const wanted = [{ visitorId: { $in: browserIds } }, { 'identity.subjectId': { $in: subjectIds } }]
  const found = wanted.map((visitor) => findIds(db.sessions, { ...visitor, endsAt: { $gt: at } }))
  return [...new Set((await Promise.all(found)).flat())]
}

export async function unbanSession(core: Core, sessionId: string, workspaceId?: string): Promise<Session> {
  const session = await findSession(core, sessionId, workspaceId)
  await liftBans(core, allIdsOf(await visitorIdsOf(core, session)))
  return session
}

/** Lifts the ban of a verified visitor, also if an erasure has removed all sessions. Errors: `ValidationFailed`. */
export async function unbanSubject(core: Core, workspaceId: string, externalSubject: string) {
  validate(field('/externalSubject', externalSubject, text(1, 256)))
  await liftBans(core, await banIdsOfSubject(core, workspaceId, externalSubject))
}

/** Returns the bans of a session. `addressBannedUntil` is the end of the ban of its network address. */
export async function banOf(
  core: Core,
  session: Session,
): Promise<{ visitorBanned: boolean; addressBannedUntil?: Date }> {
  const ids = allIdsOf(await visitorIdsOf(core, session))
  const [visitorBanned, addressBannedUntil] = await Promise.all([isAnyBanned(core, ids), networkBannedUntil(core, ids)])
  return { visitorBanned, ...(addressBannedUntil && { addressBannedUntil }) }
}

export const isBrowserBanned = async (
  core: Core,
  browser: Pick<Session, 'workspaceId' | 'connectionId' | 'clientInstanceId'>,
): Promise<boolean> => isAnyBanned(core, await banIdsOfBrowser(core, browser))

export const isSubjectBanned = async (core: Core, workspaceId: string, externalSubject: string): Promise<boolean> =>
  isAnyBanned(core, await banIdsOfSubject(core, workspaceId, externalSubject))

export const isSessionBanned = async (core: Core, session: Session): Promise<boolean> =>
  isAnyBanned(core, allIdsOf(await visitorIdsOf(core, session)))

/**
 * Stores the network from which the browser now connects, so that a later ban of the session's address
 * bans it. Returns the session with it. Errors: `VisitorBanned`, with the end of the session.
 */
export async function followAddress(core: Core, session: Session, clientAddress: string | undefined): Promise<Session> {
  const { sessionId, connectionId, network: known } = session
  const network = await networkOf(core, connectionId, clientAddress)
  if (await isNetworkBanned(core, network)) {
    await wakeupsOf(core).changing([sessionId], () => sessionStoreOf(core).end(sessionId, 'banned'))
    throw new ServiceError('VisitorBanned')
  }
  if (network === undefined || network === known) return session
  await core.db.sessions.updateOne({ _id: sessionId }, { $set: { network } })
  return { ...session, network }
}

async function liftBans(core: Core, ids: string[]) {
  await core.db.networkBans.deleteMany({ visitorIds: { $in: ids } })
  await core.db.visitors.deleteMany({ _id: { $in: ids } })
}

/** Limits of a ban of an address: 1 hour and 30 days. */
const minAddressBanSeconds = 3_600
const maxAddressBanSeconds = 2_592_000

/** Ban of a browser or a verified visitor. An erasure keeps it without the reason. */
export interface VisitorDocument {
  _id: string
  workspaceId: string
  /** The deletion of the connection deletes the ban. Absent in bans that hold in the whole workspace. */
  connectionId?: string
  bannedAt?: Date
  /** Stored only with the ban on a connection, because an erasure finds that ban. */
  banReason?: string
}

async function storeBan(
  core: Core,
  { workspaceIds, connectionIds }: Pick<VisitorIds, 'workspaceIds' | 'connectionIds'>,
  { at, reason, workspaceId, connectionId }: { at: Date; reason: string; workspaceId: string; connectionId: string },
) {
  const ban = { bannedAt: at, workspaceId }
  const upsert = (_id: string, $set: Partial<VisitorDocument>) => ({
    updateOne: { filter: { _id }, update: { $set }, upsert: true },
  })
  await core.db.visitors.bulkWrite([
    ...workspaceIds.map((id) => upsert(id, ban)),
    ...connectionIds.map((id) => upsert(id, { ...ban, banReason: reason, connectionId })),
  ])
}

/** Whether at least one of these browsers and verified visitors is banned. */
const isAnyBanned = (core: Core, visitorIds: string[]) =>
  hasDocument(core.db.visitors, { _id: { $in: visitorIds }, bannedAt: { $exists: true } })
