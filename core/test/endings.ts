import { randomUUID } from 'node:crypto'
import { banSession } from '../bans/bans.ts'
import type { RunningCore } from '../context.ts'
import { eraseVisitor } from '../privacy/erasures.ts'
import { visitorOfSession, visitorOfSubject } from '../privacy/visitor-data.ts'
import type { SessionContent } from '../sessions/model.ts'
import { visitorAccessOf } from '../sessions/visitor-access.ts'
import { closeSession, revokeSession } from '../visitors/sessions.ts'
import { setConnectionStatus, updateInstallation } from '../workspaces/workspaces.ts'
import type { TestCores } from './cores.ts'
import { credentialsOf, site as ownOrigin } from './visitor-credentials.ts'

/** An action that ends the access of a session. */
export interface Way {
  name: string
  verified?: boolean
  /** Error code of later requests of the session. */
  code: string
  /**
   * Type of the last event on the streams. Undefined if the site refuses the session, because an
   * operator can allow the site again.
   */
  event?: string
  /** Whether the action also ends the access of the second session of `createScene`. */
  sibling: boolean
  end(core: RunningCore, scene: Scene): Promise<unknown>
  /** False if a timeout or the visitor ends the session. Only actions of operators are repeated. */
  repeats?: false
}

/** Creates two sessions of one browser or of one verified visitor on a new site. */
export async function createScene(cores: TestCores, { verified }: Pick<Way, 'verified'>) {
  const site = await cores.newSite({ origins: [ownOrigin, 'https://other.example'] }, cores.workspaceId)
  const browser = randomUUID()
  const subject = randomUUID()
  const sign = (sub: string) => site.sign({ sub })
  const begin = async (clientInstanceId: string) => {
    const created = await cores.newSession(cores.core, clientInstanceId, site)
    return verified ? cores.identify(created, sign(subject)) : created
  }
  const session = await begin(browser)
  const sibling = await begin(verified ? randomUUID() : browser)
  return { ...site, subject, session, sibling, sign }
}

export type Scene = Awaited<ReturnType<typeof createScene>>

/** Returns the error of a request with the session's grant, or undefined if it is accepted. */
export const refusalOf = (session: SessionContent, core: RunningCore) =>
  visitorAccessOf(core)
    .authorize(credentialsOf(session))
    .then(
      () => undefined,
      ({ message }: Error) => message,
    )

const update =
  (settings: object): Way['end'] =>
  (core, { publicSiteKey }) =>
    updateInstallation(core, publicSiteKey, settings, undefined)
const ban: Way['end'] = (core, { session }) => banSession(core, session.sessionId, 'rude', undefined)

export const waysToEnd = (cores: TestCores): Way[] => [
  {
    name: 'the origin is taken off the installation',
    code: 'OriginNotAllowed',
    sibling: true,
    end: update({ origins: ['https://other.example'] }),
  },
  { name: 'the installation is disabled', code: 'OriginNotAllowed', sibling: true, end: update({ enabled: false }) },
  {
    name: 'the connection is disabled',
    code: 'ConnectionDisabled',
    event: 'connection.disabled',
    sibling: true,
    end: (core, { connectionId }) => setConnectionStatus(core, connectionId, 'disabled', undefined),
  },
  {
    name: 'the session is revoked',
    code: 'SessionRevoked',
    event: 'session.revoked',
    sibling: false,
    end: (core, { session }) => revokeSession(core, session.sessionId, undefined),
  },
  { name: 'the browser is banned', code: 'VisitorBanned', event: 'visitor.banned', sibling: true, end: ban },
  {
    name: 'the subject is banned',
    verified: true,
    code: 'VisitorBanned',
    event: 'visitor.banned',
    sibling: true,
    end: ban,
  },
  {
    name: 'the visitor closes the session',
    code: 'SessionClosed',
    event: 'session.closed',
    sibling: false,
    repeats: false,
    end: (core, { session }) =>
      closeSession(core, {
        credentials: credentialsOf(session),
        scope: 'continuity',
        idempotencyKey: randomUUID(),
      }),
  },
  {
    name: 'the visitor logs in',
    code: 'SessionClosed',
    event: 'session.closed',
    sibling: false,
    repeats: false,
    end: (core, { session, sign }) => cores.identify(session, sign(randomUUID()), { core }),
  },
  {
    name: 'the visitor identifies as another subject',
    verified: true,
    code: 'SessionClosed',
    event: 'session.closed',
    sibling: false,
    repeats: false,
    end: (core, { session, sign }) => cores.identify(session, sign(randomUUID()), { core }),
  },
  {
    name: 'the visitor logs out',
    verified: true,
    code: 'SessionClosed',
    event: 'session.closed',
    sibling: false,
    repeats: false,
    end: (core, { session }) => cores.clear(session, { core }),
  },
  {
    name: 'an anonymous visitor is erased',
    code: 'SessionRevoked',
    event: 'session.revoked',
    sibling: true,
    end: async (core, { session }) =>
      eraseVisitor(core, await visitorOfSession(core, session.sessionId, undefined), 'desk'),
  },
  {
    name: 'a verified visitor is erased',
    verified: true,
    code: 'SessionRevoked',
    event: 'session.revoked',
    sibling: true,
    end: async (core, { session }) =>
      eraseVisitor(core, await visitorOfSession(core, session.sessionId, undefined), 'desk'),
  },
  {
    name: 'a subject is erased by the host’s user id',
    verified: true,
    code: 'SessionRevoked',
    event: 'session.revoked',
    sibling: true,
    end: async (core, { subject }) =>
      eraseVisitor(core, await visitorOfSubject(core, cores.workspaceId, subject), 'desk'),
  },
  {
    name: 'the grant expires',
    code: 'GrantExpired',
    sibling: true,
    repeats: false,
    end: async () => cores.advance(901),
  },
  {
    name: 'the session is not renewed in time',
    code: 'SessionExpired',
    event: 'session.expired',
    sibling: true,
    repeats: false,
    end: async () => cores.advance(900 + 7200 + 1),
  },
  {
    name: 'the session reaches its maximum lifetime',
    code: 'SessionExpired',
    event: 'session.expired',
    sibling: true,
    repeats: false,
    end: async () => cores.advance(24 * 3600 + 1),
  },
]
