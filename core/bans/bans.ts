import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { invalid, inWorkspace, ServiceError } from '../errors.ts'
import { field, integer, text, validate } from '../rules.ts'
import type { Session } from '../sessions/model.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import type { VisitorIdentifier } from '../sessions/visitor-ids.ts'
import { allIdsOf } from '../sessions/visitor-ids-model.ts'
import type { Wakeups } from '../wakeups/wakeups.ts'
import type { BanStore } from './ban-store.ts'
import type { NetworkBans } from './network-bans.ts'

/**
 * Bans of visitors, which hold in the whole workspace. Errors of `ban`, `unban` and `find`:
 * `NotFound` for an unknown session or a session of another workspace.
 */
export interface Bans {
  /**
   * Bans the browser. For a verified session, also bans the subject. With `addressBanSeconds`, also
   * bans the network address of the session for this time. Additional errors: `ValidationFailed`.
   */
  ban(sessionId: string, reason: string, workspaceId?: string, addressBanSeconds?: number): Promise<Session>
  unban(sessionId: string, workspaceId?: string): Promise<Session>
  /**
   * Lifts the ban of a verified visitor, for example after an erasure has removed all sessions of
   * that visitor. Does nothing if the visitor is not banned. Errors: `ValidationFailed`.
   */
  unbanSubject(workspaceId: string, externalSubject: string): Promise<void>
  /** Returns a session. */
  find(sessionId: string, workspaceId?: string): Promise<Session>
  isBrowserBanned(session: Pick<Session, 'workspaceId' | 'connectionId' | 'clientInstanceId'>): Promise<boolean>
  isSubjectBanned(workspaceId: string, externalSubject: string): Promise<boolean>
  isBanned(session: Session): Promise<boolean>
  /**
   * Stores the network from which the browser now connects, so that a later ban of the session's
   * address bans this network. Returns the session with this network. If the network is already
   * banned, ends the session and throws `VisitorBanned`.
   */
  followAddress(session: Session, clientAddress: string | undefined): Promise<Session>
  /**
   * Returns whether the session's browser or verified subject is banned. `addressBannedUntil` is
   * the end of the ban of its network address, if there is one.
   */
  banOf(session: Session): Promise<{ visitorBanned: boolean; addressBannedUntil?: Date }>
}

/** Bans of visitors by browser, verified subject and network address. */
export function createBans(dependencies: {
  store: BanStore
  sessions: Pick<SessionStore, 'find' | 'unendedOf' | 'end' | 'endAll' | 'setNetwork'>
  networkBans: NetworkBans
  identifier: VisitorIdentifier
  wakeups: Pick<Wakeups, 'changing'>
  now: () => number
}): Bans {
  const { store, sessions, networkBans, identifier, wakeups, now } = dependencies

  async function find(sessionId: string, workspaceId?: string): Promise<Session> {
    const [session] = await sessions.find([sessionId])
    return inWorkspace(session, workspaceId)
  }

  async function lift(ids: string[]) {
    await networkBans.unban(ids)
    await store.unban(ids)
  }

  return {
    find,

    async ban(sessionId, reason, workspaceId, addressBanSeconds) {
      const { network, ...session } = await find(sessionId, workspaceId)
      validate(
        field('/reason', reason, text(0, 512)),
        field('/addressBanSeconds', addressBanSeconds, integer(minAddressBanSeconds, maxAddressBanSeconds)),
      )
      const at = new Date(now())
      const ids = await identifier.of(session)
      if (addressBanSeconds !== undefined) {
        if (network === undefined) throw addressUnknown()
        const until = new Date(at.getTime() + addressBanSeconds * 1000)
        await networkBans.ban(network, [...ids.workspaceIds, ...ids.connectionIds], until)
      }
      await store.ban(ids, { at, reason, workspaceId: session.workspaceId, connectionId: session.connectionId })
      // No session begins after the ban is written, so this read finds every session that must end. The
      // other cores are told before the sessions end, because this process may die in between.
      const unended = await sessions.unendedOf(ids, at)
      await wakeups.changing([...new Set([...unended, sessionId])], () => sessions.endAll(unended, 'banned'))
      return find(sessionId)
    },

    async unban(sessionId, workspaceId) {
      const session = await find(sessionId, workspaceId)
      await lift(allIdsOf(await identifier.of(session)))
      return session
    },

    async unbanSubject(workspaceId, externalSubject) {
      validate(field('/externalSubject', externalSubject, text(1, 256)))
      await lift(await identifier.ofSubject(workspaceId, externalSubject))
    },

    async banOf(session) {
      const ids = allIdsOf(await identifier.of(session))
      const [visitorBanned, addressBannedUntil] = await Promise.all([store.isBanned(ids), networkBans.bannedUntil(ids)])
      return { visitorBanned, ...(addressBannedUntil && { addressBannedUntil }) }
    },

    isBrowserBanned: async (browser) => store.isBanned(await identifier.ofBrowser(browser)),

    isSubjectBanned: async (workspaceId, externalSubject) =>
      store.isBanned(await identifier.ofSubject(workspaceId, externalSubject)),

    isBanned: async (session) => store.isBanned(allIdsOf(await identifier.of(session))),

    async followAddress(session, clientAddress) {
      const { sessionId, connectionId, network: known } = session
      const network = await networkBans.networkOf(connectionId, clientAddress)
      if (await networkBans.isBanned(network)) {
        await wakeups.changing([sessionId], () => sessions.end(sessionId, 'banned'))
        throw new ServiceError(ErrorCode.VISITOR_BANNED)
      }
      if (network === undefined || network === known) return session
      await sessions.setNetwork(sessionId, network)
      return { ...session, network }
    },
  }
}

/** Minimum and maximum duration of a ban of a network address: 1 hour and 30 days. */
const minAddressBanSeconds = 3_600
const maxAddressBanSeconds = 2_592_000

const addressUnknown = () => invalid('/addressBanSeconds', 'addressKnown')
