import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'
import type { Wakeups } from '../log/wakeups.ts'
import { field, integer, text, validate } from '../rules.ts'
import type { Session } from './model.ts'
import { bannedIdsOf, type NetworkBans } from './network-bans.ts'
import type { SessionStore } from './session-store.ts'

/**
 * Bans of visitors. Errors of all methods: `NotFound` for an unknown session or a session of
 * another workspace.
 */
export interface Bans {
  /**
   * Bans the browser. For a verified session, also bans the subject on the whole connection. With
   * `addressBanSeconds`, also bans the network address of the session for this time. Additional
   * errors: `ValidationFailed`.
   */
  ban(sessionId: string, reason: string, workspaceId?: string, addressBanSeconds?: number): Promise<Session>
  unban(sessionId: string, workspaceId?: string): Promise<Session>
  /**
   * Returns whether the session's browser or verified subject is banned. `addressBannedUntil` is
   * the end of the ban of its network address, if there is one.
   */
  banOf(session: Session): Promise<{ visitorBanned: boolean; addressBannedUntil?: Date }>
}

/** Bans of visitors by browser, verified subject and network address. */
export function createBans(dependencies: {
  store: SessionStore
  networkBans: NetworkBans
  find: (sessionId: string, workspaceId?: string) => Promise<Session>
  wakeups: Pick<Wakeups, 'changing' | 'stateChanged'>
  now: () => number
}): Bans {
  const { store, networkBans, find, wakeups, now } = dependencies
  return {
    async ban(sessionId, reason, workspaceId, addressBanSeconds) {
      const { network, ...session } = await find(sessionId, workspaceId)
      validate(
        field('/reason', reason, text(0, 512)),
        field('/addressBanSeconds', addressBanSeconds, integer(minAddressBanSeconds, maxAddressBanSeconds)),
      )
      const at = new Date(now())
      if (addressBanSeconds !== undefined) {
        if (network === undefined) throw addressUnknown()
        await networkBans.ban({ ...session, network }, new Date(at.getTime() + addressBanSeconds * 1000))
      }
      const { visitorId, identity, connectionId } = session
      const unended = () => store.unendedOf({ visitorId, subjectId: identity?.subjectId }, at)
      const known = await unended()
      await wakeups.changing([...known, sessionId], async () => {
        for (const id of bannedIdsOf(session)) await store.ban(id, { at, reason, connectionId })
        // `known` lacks sessions that began after the first read and before the ban was written.
        const late = (await unended()).filter((id) => !known.includes(id))
        await store.endAll([...known, ...late], 'banned')
        await wakeups.stateChanged(...late)
      })
      return find(sessionId)
    },

    async unban(sessionId, workspaceId) {
      const session = await find(sessionId, workspaceId)
      const ids = bannedIdsOf(session)
      await networkBans.unban(ids)
      for (const id of ids) await store.unban(id)
      return session
    },

    async banOf(session) {
      const ids = bannedIdsOf(session)
      const [visitorBanned, addressBannedUntil] = await Promise.all([
        store.isBanned(...ids),
        networkBans.bannedUntil(ids),
      ])
      return { visitorBanned, ...(addressBannedUntil && { addressBannedUntil }) }
    },
  }
}

/** Minimum and maximum duration of a ban of a network address: 1 hour and 30 days. */
const minAddressBanSeconds = 3_600
const maxAddressBanSeconds = 2_592_000

const addressUnknown = () =>
  new ServiceError(ErrorCode.VALIDATION_FAILED, { issues: [{ path: '/addressBanSeconds', rule: 'addressKnown' }] })
