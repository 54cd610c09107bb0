import { createClient } from '@connectrpc/connect'
import { describe, expect, it } from 'vitest'
import { EventsService } from '#proto/events/v1/events_pb.js'
import { WorkspaceService } from '#proto/workspace/v1/workspace_pb.js'
import { createAuthorizedTransport } from '../../core-client/authorized-transport.ts'
import { until } from '../../test/support/until.ts'
import { signWorkspaceSession } from '../../test/support/workspace-session.ts'
import type { RunningCore } from '../context.ts'
import { inviteOperator } from '../operators/accounts.ts'
import { consoleCaller, createSignInLink, findConsoleSession, signIn } from '../operators/console-sessions.ts'
import { codeOf, testCores } from '../test/cores.ts'
import { clientsOf } from '../test/operator-clients.ts'
import { transportTo } from '../test/transports.ts'
import { accessOf } from '../transport/caller.ts'
import { tokenIdOf } from './access.ts'
import { operatorScopes } from './workspace-sessions.ts'

const cores = testCores({ count: 2 })
const scopes = ['workspaces:read', 'workspaces:write', 'events:read']

const use = (token: string, core: RunningCore = cores.core) =>
  codeOf(accessOf(core).authenticate(`Bearer ${token}`, scopes[0]!))
const onBoth = (token: string) => Promise.all(cores.cores.map((core) => use(token, core)))
/** A use is noted after the call. A revocation at the same time may have to be repeated. */
const isNoted = (token: string) => until('the use', () => cores.core.db.tokens.findOne({ _id: tokenIdOf(token) }))
const revoke = async (token: string, of?: string) =>
  (await clientsOf(cores.core, of)).workspaces.revokeToken({ tokenId: tokenIdOf(token) }).then(
    () => 'ok',
    ({ rawMessage }) => rawMessage,
  )

describe('a revoked token', () => {
  it.each(['service token', 'workspace session'])(
    'is refused by every core when the call returns: a %s',
    async (kind) => {
      const { workspaceId } = await cores.newSite()
      const issue = (subject: string) =>
        kind === 'service token'
          ? accessOf(cores.core).issue({ subject, scopes, workspaceId })
          : signWorkspaceSession({ claims: { sub: subject, wid: workspaceId, scope: scopes.join(' ') } })
      const [token, other] = [await issue('leaked'), await issue('kept')]
      expect(await onBoth(token)).toEqual(['ok', 'ok'])
      await isNoted(token)
      const changed = `${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`
      expect(await revoke(token)).toBe('ok')
      expect(await revoke(token)).toBe('ok')
      expect(await onBoth(token)).toEqual(['Unauthenticated', 'Unauthenticated'])
      expect(await onBoth(changed)).toEqual(['Unauthenticated', 'Unauthenticated'])
      expect(await onBoth(other)).toEqual(['ok', 'ok'])
      cores.advance(70)
      expect(await onBoth(token)).toEqual(['Unauthenticated', 'Unauthenticated'])
    },
  )

  it('is refused if it was never used, unless the caller has a workspace', async () => {
    const { workspaceId } = await cores.newSite()
    const token = await accessOf(cores.core).issue({ subject: 'unused', scopes, workspaceId })
    expect(await revoke(token, workspaceId)).toBe('NotFound')
    expect(await use(token)).toBe('ok')
    const unused = await accessOf(cores.core).issue({ subject: 'also unused', scopes, workspaceId })
    expect(await revoke(unused)).toBe('ok')
    expect(await onBoth(unused)).toEqual(['Unauthenticated', 'Unauthenticated'])
  })

  it('ends its streams on every core', async () => {
    const { workspaceId } = await cores.newSite()
    const token = await accessOf(cores.core).issue({ subject: 'follower', scopes, workspaceId })
    const events = createClient(EventsService, createAuthorizedTransport(transportTo(cores.other), token))
    const stream = events.followEvents({})[Symbol.asyncIterator]()
    await stream.next()
    const end = stream.next().then(
      () => 'an event',
      ({ rawMessage }) => rawMessage,
    )
    await isNoted(token)
    expect(await revoke(token)).toBe('ok')
    expect(await end).toBe('Unauthenticated')
  })

  it('ends the links and sessions of the console that it made', async () => {
    const { workspaceId } = await cores.newSite()
    const core = cores.core
    const token = await accessOf(cores.core).issue({ subject: 'maker', scopes, workspaceId })
    const caller = await accessOf(cores.core).authenticate(`Bearer ${token}`, scopes[0]!)
    const newLink = async (by = caller) => ({
      linkSecret: (await createSignInLink(core, by, { workspaceId, scopes: [] })).secret,
    })
    const { secret } = await signIn(core, await newLink(), 'Ada', '')
    const ofSession = await newLink(await consoleCaller(core, secret))
    const other = await signIn(core, await newLink({ ...caller, tokenId: 'tok_other' }), 'Mia', '')
    const left = await newLink()
    const workspaceSession = await signWorkspaceSession({
      claims: { sub: 'eve', wid: workspaceId, scope: scopes.join(' ') },
    })
    const signedIn = await signIn(core, { workspaceSession }, 'Eve', '')
    for (const each of [token, workspaceSession]) expect(await revoke(each)).toBe('ok')
    for (const core of cores.cores) {
      expect(await codeOf(findConsoleSession(core, secret))).toBe('Unauthenticated')
      expect(await codeOf(consoleCaller(core, signedIn.secret))).toBe('Unauthenticated')
      expect(await codeOf(findConsoleSession(core, other.secret))).toBe('ok')
    }
    for (const credential of [left, ofSession, { workspaceSession }])
      expect(await codeOf(signIn(cores.other, credential, 'Ada', ''))).toBe('Unauthenticated')
  })
})

it('the revocation of a token ends the invitations that it made, also after the token has expired', async () => {
  const { workspaceId } = await cores.newSite()
  const claims = { sub: 'owner', wid: workspaceId, scope: [...operatorScopes].join(' ') }
  const [token, other] = await Promise.all([
    signWorkspaceSession({ claims, now: cores.now() }),
    signWorkspaceSession({ claims: { ...claims, sub: 'another owner' }, now: cores.now() }),
  ])
  const invite = async (by: string) => {
    const caller = await accessOf(cores.core).authenticate(`Bearer ${by}`, scopes[0]!)
    return { linkSecret: (await inviteOperator(cores.core, caller, { workspaceId, role: 'viewer' })).secret }
  }
  const [revoked, kept] = [await invite(token), await invite(other)]
  expect(await revoke(token)).toBe('ok')
  const { tokens } = cores.core.database.collections
  const { removeAt, expiresAt } = (await tokens.findOne({ _id: tokenIdOf(token) }))!
  expect(removeAt!.getTime() - expiresAt!.getTime()).toBeGreaterThan(7 * 86_400_000)
  cores.advance(86_400)
  expect(await codeOf(signIn(cores.other, revoked, 'Eve', ''))).toBe('Unauthenticated')
  expect(await codeOf(signIn(cores.other, kept, 'Ada', ''))).toBe('ok')
})

describe('the list of tokens', () => {
  it('has the tokens of the workspace, the last used first, and notes a use once a minute', async () => {
    const { workspaceId } = await cores.newSite()
    const token = await accessOf(cores.core).issue({ subject: 'first', scopes, workspaceId, lifetime: 3_600 })
    const { workspaces } = await clientsOf(cores.core, workspaceId)
    const listed = async () => (await workspaces.listTokens({})).tokens.filter(({ subject }) => subject === 'first')
    await use(token)
    const [first] = await until('the use', async () => ((await listed()).length > 0 ? listed() : undefined))
    expect(first).toMatchObject({ tokenId: tokenIdOf(token), workspaceId })
    expect(first!.revokedAt).toBeUndefined()
    expect(first!.expiresAt).toBeDefined()
    cores.advance(59)
    await use(token)
    cores.advance(2)
    const other = createClient(WorkspaceService, createAuthorizedTransport(transportTo(cores.core), token))
    await until('the use of the reader', async () => (await other.listTokens({ limit: 1 })).nextPageToken !== '')
    await until('the next use', async () => (await listed())[0]!.lastUsedAt!.seconds > first!.lastUsedAt!.seconds + 60n)
    await revoke(token)
    expect((await listed())[0]).toMatchObject({ revokedBy: 'ada' })
    const foreign = await clientsOf(cores.core, 'ws_other')
    expect((await foreign.workspaces.listTokens({})).tokens.filter((each) => each.workspaceId !== 'ws_other')).toEqual(
      [],
    )
    expect(await revoke(token, 'ws_other')).toBe('NotFound')
  })
})
