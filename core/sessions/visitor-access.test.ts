import { describe, expect, it } from 'vitest'
import type { PublicErrorCode } from '../../contract/errors.ts'
import { createKeyring } from '../keys/keyring.ts'
import { bareCore } from '../test/core-with.ts'
import { site } from '../test/visitor-credentials.ts'
import type { LiveCache } from '../wakeups/live-cache.ts'
import type { Connection, Installation } from '../workspaces/model.ts'
import { grantsOf } from './grants.ts'
import type { Session } from './model.ts'
import { directoryOf, visitorAccessOf } from './visitor-access.ts'

const now = Date.UTC(2030, 0, 1)
const nowSeconds = now / 1000
const keyring = createKeyring([{ kid: 'k1', secret: new Uint8Array(32).fill(1) }])
const newCore = () => bareCore({ keyring, now: () => now })
const grants = grantsOf(newCore())

const activeSession = {
  sessionId: 'ses_1',
  connectionId: 'con_1',
  publicSiteKey: 'pk_1',
  origin: site,
  status: 'active',
  connectionVersion: 2,
  grantExpiresAt: new Date(now + 60_000),
  renewableUntil: new Date(now + 90_000),
  endsAt: new Date(now + 120_000),
} as Session
const enabledConnection = { connectionId: 'con_1', status: 'enabled', statusVersion: 2 } as Connection
const enabledInstallation = { publicSiteKey: 'pk_1', enabled: true, origins: [site] } as Installation

interface State {
  session?: Session
  connection?: Connection
  installation?: Installation
  /** The session in the store, if the cached one is outdated. */
  storedSession?: Session
}

/** Creates visitor access over caches and stores in memory. */
function accessTo(change: State = {}) {
  const state = { session: activeSession, connection: enabledConnection, installation: enabledInstallation, ...change }
  const cacheOf = <V>(value: V | undefined, stored = value) =>
    ({ get: async () => value, reload: async () => stored, peek: () => value }) as unknown as LiveCache<V>
  const directory = {
    sessions: cacheOf(state.session, 'storedSession' in change ? change.storedSession : state.session),
    connections: cacheOf(state.connection),
    installations: cacheOf(state.installation),
  } as ReturnType<typeof directoryOf>
  const core = newCore()
  directoryOf.set(core, directory)
  return { access: visitorAccessOf(core), state }
}

const grantFor = (claims: { org?: string; exp?: number } = {}) =>
  grants.sign({ sid: 'ses_1', org: site, iat: nowSeconds - 60, exp: nowSeconds + 60, ...claims })

const codeOf = (attempt: Promise<unknown>) =>
  attempt.then(
    () => 'ok',
    (error: { code: PublicErrorCode }) => error.code,
  )

async function authorize(
  change: State = {},
  options: { origin?: string; exp?: number; resumed?: boolean; closedToo?: boolean; expiredToo?: boolean } = {},
) {
  const { origin = site, exp, ...how } = options
  const accessGrant = await grantFor(exp === undefined ? {} : { exp })
  return codeOf(accessTo(change).access.authorize({ accessGrant, origin }, how))
}

const sessionWith = (change: Partial<Session>): Session => ({ ...activeSession, ...change })
const atNow = { grantExpiresAt: new Date(now), renewableUntil: new Date(now) }
/** The latest grant has expired, and the session can still be renewed. */
const asleep = sessionWith({ grantExpiresAt: new Date(now) })
const otherSite = 'https://other.example'
const disabledConnection: Connection = { ...enabledConnection, status: 'disabled' }
const enabledAgain: Connection = { ...enabledConnection, statusVersion: 4 }
const disabledInstallation: Installation = { ...enabledInstallation, enabled: false }
const installationWith = (origins: string[]): Installation => ({ ...enabledInstallation, origins })

describe('a request of a visitor', () => {
  it('is authorized while session, connection and installation are live', async () => {
    const { access, state } = accessTo()
    expect(await access.authorize({ accessGrant: await grantFor(), origin: site })).toEqual({
      session: state.session,
      installation: state.installation,
      grantIssuedAt: new Date(now - 60_000),
      grantExpiresAt: new Date(now + 60_000),
    })
  })

  it('is rejected without a grant', async () => {
    expect(await codeOf(accessTo().access.authorize({ accessGrant: '', origin: site }))).toBe('GrantMissing')
  })

  it.each<[string, string, State]>([
    ['SessionRevoked', 'the session is revoked', { session: sessionWith({ status: 'revoked' }) }],
    ['VisitorBanned', 'the visitor is banned', { session: sessionWith({ status: 'banned' }) }],
    ['SessionClosed', 'the session is closed', { session: sessionWith({ status: 'closed' }) }],
    ['SessionExpired', 'the session reached its end', { session: sessionWith({ endsAt: new Date(now) }) }],
    [
      'SessionRevoked',
      'the session was revoked before its end',
      { session: sessionWith({ status: 'revoked', endsAt: new Date(now) }) },
    ],
    ['GrantInvalid', 'the session does not exist', { session: undefined }],
    ['ConnectionDisabled', 'the connection does not exist', { connection: undefined }],
    ['ConnectionDisabled', 'the connection is disabled', { connection: disabledConnection }],
    ['ConnectionDisabled', 'the connection was disabled in between', { connection: enabledAgain }],
    [
      'ConnectionDisabled',
      'the session is closed and its connection disabled',
      { session: sessionWith({ status: 'closed' }), connection: disabledConnection },
    ],
    ['OriginNotAllowed', 'the installation does not exist', { installation: undefined }],
    ['OriginNotAllowed', 'the installation is disabled', { installation: disabledInstallation }],
    ['OriginNotAllowed', 'the origin is not allowed', { installation: installationWith([otherSite]) }],
  ])('is rejected with %s when %s', async (code, _, change) => {
    expect(await authorize(change)).toBe(code)
  })

  it('is rejected from an allowed origin that is not the origin of the session', async () => {
    expect(await authorize({ installation: installationWith([site, otherSite]) }, { origin: otherSite })).toBe(
      'OriginMismatch',
    )
  })

  it('is rejected in the second in which the grant expires, and later', async () => {
    expect(await authorize({}, { exp: nowSeconds })).toBe('GrantExpired')
    expect(await authorize({}, { exp: nowSeconds + 1 })).toBe('ok')
  })

  it('is authorized by a grant that another core issued after this core cached the session', async () => {
    expect(await authorize({ session: sessionWith(atNow) }, { exp: nowSeconds + 1 })).toBe('ok')
  })

  it('is authorized to renew with an expired grant while the session is live', async () => {
    const expired = { exp: nowSeconds - 7000, expiredToo: true }
    expect(await authorize({ session: asleep }, expired)).toBe('ok')
    expect(await authorize({}, expired)).toBe('ok')
    expect(await authorize({ session: sessionWith(atNow) }, expired)).toBe('SessionExpired')
    expect(await authorize({ session: sessionWith({ ...asleep, endsAt: new Date(now) }) }, expired)).toBe(
      'SessionExpired',
    )
  })

  it('is rejected because of an expired session only after a read of the stored session', async () => {
    const change = { session: sessionWith(atNow), storedSession: activeSession }
    expect(await authorize(change, { exp: nowSeconds })).toBe('GrantExpired')
    expect(await authorize(change, { exp: nowSeconds, expiredToo: true })).toBe('ok')
  })

  it.each<[string, string, State, string?]>([
    ['OriginNotAllowed', 'the origin is not allowed', { installation: installationWith([otherSite]) }],
    [
      'OriginMismatch',
      'the grant belongs to another origin',
      { installation: installationWith([site, otherSite]) },
      otherSite,
    ],
    ['SessionExpired', 'the session has expired', { session: sessionWith(atNow) }],
    ['SessionRevoked', 'the session is revoked', { session: sessionWith({ status: 'revoked' }) }],
    ['VisitorBanned', 'the visitor is banned', { session: sessionWith({ status: 'banned' }) }],
    ['SessionClosed', 'the session is closed', { session: sessionWith({ status: 'closed' }) }],
    ['ConnectionDisabled', 'the connection is disabled', { connection: disabledConnection }],
    ['GrantInvalid', 'the session does not exist', { session: undefined }],
  ])('is rejected with %s on every route if its grant has expired and %s', async (code, _, change, origin = site) => {
    for (const how of [{}, { expiredToo: true }, { closedToo: true }])
      expect(await authorize(change, { exp: nowSeconds - 1, origin, ...how })).toBe(code)
  })

  it('uses the cached session, but reads the stored session when it repeats a close', async () => {
    const change = { storedSession: sessionWith({ status: 'revoked' }) }
    expect(await authorize(change)).toBe('ok')
    expect(await authorize(change, { closedToo: true })).toBe('SessionRevoked')
  })

  it('resumes a stream with an expired grant while a later grant of the session is valid', async () => {
    expect(await authorize({}, { exp: nowSeconds - 30, resumed: true })).toBe('ok')
    expect(await authorize({ session: asleep }, { exp: nowSeconds - 30, resumed: true })).toBe('GrantExpired')
  })

  it('resumes the stream of an ended session, which then gets the event of the end', async () => {
    for (const status of ['closed', 'revoked', 'banned'] as const)
      expect(await authorize({ session: sessionWith({ status }) }, { resumed: true })).toBe('ok')
    expect(await authorize({ session: sessionWith(atNow) }, { exp: nowSeconds, resumed: true })).toBe('ok')
    expect(await authorize({ connection: disabledConnection }, { resumed: true })).toBe('ok')
  })

  it('may repeat the close of its session until the grant expires', async () => {
    const closed = { session: sessionWith({ status: 'closed' }) }
    expect(await authorize(closed, { closedToo: true })).toBe('ok')
    expect(await authorize(closed, { closedToo: true, exp: nowSeconds })).toBe('SessionClosed')
    expect(await authorize({ ...closed, connection: undefined }, { closedToo: true })).toBe('ConnectionDisabled')
  })
})

describe('the cached state of an authorized session', () => {
  it('is reported as unchanged while session, connection and installation are unchanged', () => {
    expect(accessTo().access.isUnchanged(activeSession)).toBe(true)
  })

  it.each<[string, State]>([
    ['the session is not cached', { session: undefined }],
    ['the session was loaded again', { session: { ...activeSession } }],
    ['the connection is not cached', { connection: undefined }],
    ['the connection is disabled', { connection: disabledConnection }],
    ['the connection has a later version', { connection: enabledAgain }],
    ['the installation is not cached', { installation: undefined }],
    ['the installation is disabled', { installation: disabledInstallation }],
    ['the origin was removed', { installation: installationWith([]) }],
  ])('is reported as changed when %s', (_, change) => {
    expect(accessTo(change).access.isUnchanged(activeSession)).toBe(false)
  })
})

it('an ended session is not reported as unchanged', () => {
  const session = sessionWith({ status: 'revoked' })
  expect(accessTo({ session }).access.isUnchanged(session)).toBe(false)
})

describe('the end of a session', () => {
  const { grantExpiresAt } = activeSession
  it.each<[string, State, object]>([
    ['is undefined while it is live', {}, { grantExpiresAt }],
    ['is `closed` when it does not exist', { session: undefined }, { end: 'closed' }],
    ['is `closed` after its close', { session: sessionWith({ status: 'closed' }) }, { end: 'closed', grantExpiresAt }],
    [
      'is undefined, and `refused` is set, when its latest grant has expired',
      { session: asleep },
      { refused: 'GrantExpired', grantExpiresAt: new Date(now) },
    ],
    [
      'is `expired` when it can no longer be renewed',
      { session: sessionWith(atNow) },
      { end: 'expired', refused: 'GrantExpired', grantExpiresAt: new Date(now) },
    ],
    ['is `disabled` without its connection', { connection: undefined }, { end: 'disabled', grantExpiresAt }],
    [
      'is undefined, and `refused` is set, when its origin is not allowed',
      { installation: installationWith([]) },
      { refused: 'OriginNotAllowed', grantExpiresAt },
    ],
    [
      'is undefined, and `refused` is set, when its installation is disabled',
      { installation: disabledInstallation },
      { refused: 'OriginNotAllowed', grantExpiresAt },
    ],
    ['is read from the store', { storedSession: sessionWith({ status: 'banned' }) }, { end: 'banned', grantExpiresAt }],
  ])('%s', async (_, change, expected) => {
    expect(await accessTo(change).access.endOf('ses_1')).toEqual(expected)
  })
})

describe('a read of a live session', () => {
  it.each<[string, State, string]>([
    ['it does not exist', { session: undefined }, 'GrantInvalid'],
    ['it is revoked in the store', { storedSession: sessionWith({ status: 'revoked' }) }, 'SessionRevoked'],
    ['it can no longer be renewed', { session: sessionWith(atNow) }, 'SessionExpired'],
    ['its connection is disabled', { connection: disabledConnection }, 'ConnectionDisabled'],
  ])('is rejected when %s', async (_, change, expected) => {
    expect(await codeOf(accessTo(change).access.live('ses_1'))).toBe(expected)
  })

  it('returns a session whose grant has expired', async () => {
    expect(await accessTo({ session: asleep }).access.live('ses_1')).toBe(asleep)
  })

  it('returns the stored session', async () => {
    const storedSession = sessionWith({ hasWritten: true })
    expect(await accessTo({ storedSession }).access.live('ses_1')).toBe(storedSession)
  })
})

describe('a write that finds its session ended', () => {
  it('is rejected with the reason of the end', async () => {
    const { access } = accessTo({ storedSession: sessionWith({ status: 'banned' }) })
    expect(await codeOf(access.rejectEnded('ses_1'))).toBe('VisitorBanned')
  })

  it('is rejected even if the session is live again', async () => {
    expect(await codeOf(accessTo().access.rejectEnded('ses_1'))).toBe('SessionClosed')
  })
})
