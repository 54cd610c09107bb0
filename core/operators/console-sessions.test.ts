import { createHash } from 'node:crypto'
import { createClient, type Transport } from '@connectrpc/connect'
import { describe, expect, it } from 'vitest'
import { ConsoleService } from '#proto/console/v1/console_pb.js'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { itLong } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { signWorkspaceSession } from '../../test/support/workspace-session.ts'
import type { RunningCore } from '../context.ts'
import { deleteObject } from '../privacy/deletions.ts'
import { runDueRemovals } from '../privacy/removals.ts'
import { hasFailed, testCores } from '../test/cores.ts'
import { transportTo } from '../test/transports.ts'
import { accessOf } from '../transport/caller.ts'
import { operatorScopes } from '../workspaces/workspace-sessions.ts'
import { createWorkspace } from '../workspaces/workspaces.ts'

const cores = testCores({ count: 2 })

/** Creates clients of a core whose calls have this `Authorization` header. */
function clientsOf(core: RunningCore, authorization: string) {
  const inMemory = transportTo(core)
  const transport: Transport = {
    unary: (method, signal, timeoutMs, _header, input) =>
      inMemory.unary(method, signal, timeoutMs, { authorization }, input),
    stream: (method, signal, timeoutMs, _header, input) =>
      inMemory.stream(method, signal, timeoutMs, { authorization }, input),
  }
  return { console: createClient(ConsoleService, transport), messaging: createClient(MessagingService, transport) }
}

const issue = async (grant: { scopes?: string[]; workspaceId?: string; lifetime?: number } = {}) =>
  `Bearer ${await accessOf(cores.core).issue({ subject: 'admin', scopes: [...operatorScopes], ...grant })}`
const gateway = async (core = cores.core) => clientsOf(core, await issue({ scopes: ['visitors:act'] })).console
const admin = async (grant?: Parameters<typeof issue>[0]) => clientsOf(cores.core, await issue(grant)).console

async function newLink() {
  const { secret } = await (await admin()).createSignInLink({ workspaceId: cores.workspaceId, operator: 'ada' })
  return secret
}

const byLink = (value: string, more: { displayName?: string; replacedSecret?: string } = {}) => ({
  credential: { case: 'linkSecret' as const, value },
  displayName: 'Ada',
  ...more,
})

async function newSession(core = cores.core) {
  return (await gateway(core)).signIn(byLink(await newLink()))
}

const list = (core: RunningCore, secret: string) =>
  clientsOf(core, `Console ${secret}`).messaging.listConversations({ workspaceId: cores.workspaceId })

it('the agents of a workspace are listed on every core while they are signed in, each name once', async () => {
  const named = async (displayName: string) => (await gateway()).signIn(byLink(await newLink(), { displayName }))
  await named('Zoë')
  await named('Bea')
  const { sessionSecret } = await named('Bea')
  const leaving = await named('Carl')
  await (await gateway()).signOut({ sessionSecret: leaving.sessionSecret })
  const { agents } = await clientsOf(cores.other, `Console ${sessionSecret}`).messaging.listAgents({})
  const names = agents.map(({ displayName }) => displayName)
  expect(names.filter((name) => ['Bea', 'Carl', 'Zoë'].includes(name))).toEqual(['Bea', 'Zoë'])
  const elsewhere = await clientsOf(cores.core, await issue({ workspaceId: 'ws_other' })).messaging.listAgents({})
  expect(elsewhere.agents).toEqual([])
})

describe('a sign-in link', () => {
  it('creates a session that works on every core', async () => {
    const { sessionSecret, session } = await newSession()
    expect(session).toMatchObject({ workspaceId: cores.workspaceId, operator: 'ada', displayName: 'Ada' })
    expect(session!.scopes).toEqual([...operatorScopes])
    for (const core of cores.cores) await list(core, sessionSecret)
  })

  it('is accepted in only one of many concurrent calls on two cores', async () => {
    const gateways = [await gateway(cores.core), await gateway(cores.other)]
    for (let round = 0; round < 5; round += 1) {
      const link = await newLink()
      const calls = Array.from({ length: 10 }, (_, index) => gateways[index % 2]!.signIn(byLink(link)))
      const answers = await Promise.allSettled(calls)
      expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
      for (const answer of answers)
        if (answer.status === 'rejected') expect(String(answer.reason)).toContain('Unauthenticated')
    }
  })

  it('is refused after ten minutes or with an unknown secret', async () => {
    const link = await newLink()
    cores.advance(601)
    await expect((await gateway()).signIn(byLink(link))).rejects.toThrow('Unauthenticated')
    await expect((await gateway()).signIn(byLink('x'.repeat(43)))).rejects.toThrow('Unauthenticated')
    await expect((await gateway()).signIn(byLink(''))).rejects.toThrow('Unauthenticated')
  })

  it('still works after a sign-in was rejected because of an invalid name', async () => {
    const link = await newLink()
    for (const displayName of ['', '   ', 'a\nb', 'x'.repeat(129)])
      await expect((await gateway()).signIn(byLink(link, { displayName }))).rejects.toThrow('ValidationFailed')
    await (await gateway()).signIn(byLink(link))
  })

  it('grants no scope or workspace that its creator lacks, and no session that outlives its creator’s token', async () => {
    const { workspaceId } = cores
    const scopes = ['workspaces:write', 'messages:read']
    const limited = await admin({ scopes, workspaceId, lifetime: 3_600 })
    await expect(limited.createSignInLink({ scopes: ['messages:write'] })).rejects.toThrow('PermissionDenied')
    await expect(limited.createSignInLink({ scopes: ['visitors:act'] })).rejects.toThrow('PermissionDenied')
    await expect(limited.createSignInLink({ workspaceId: 'ws_other' })).rejects.toThrow('NotFound')
    await expect((await admin()).createSignInLink({ workspaceId: 'ws_none' })).rejects.toThrow('NotFound')
    const { secret } = await limited.createSignInLink({})
    const { session } = await (await gateway()).signIn(byLink(secret))
    expect(session!.scopes.toSorted()).toEqual(scopes.toSorted())
    expect(Number(session!.expiresAt!.seconds) * 1000).toBeLessThanOrEqual(cores.now() + 3_600_000)
  })

  it('does not let operators act as a gateway', async () => {
    const { sessionSecret } = await newSession()
    const { console: own } = clientsOf(cores.core, `Console ${sessionSecret}`)
    await expect(own.signIn(byLink(await newLink()))).rejects.toThrow('PermissionDenied')
    await expect(own.getConsoleSession({ sessionSecret })).rejects.toThrow('PermissionDenied')
  })
})

describe('a workspace session', () => {
  it('is exchanged for a console session with the same operator scopes and the same expiry', async () => {
    const exp = Math.floor(cores.now() / 1000) + 600
    const value = await signWorkspaceSession({
      claims: { wid: cores.workspaceId, sub: 'bob', scope: 'messages:read visitors:act', exp },
    })
    const credential = { case: 'workspaceSession' as const, value }
    const { session, sessionSecret } = await (await gateway()).signIn({ credential, displayName: ' Bob ' })
    expect(session).toMatchObject({ operator: 'bob', displayName: 'Bob', scopes: ['messages:read'] })
    expect(Number(session!.expiresAt!.seconds)).toBe(exp)
    await list(cores.core, sessionSecret)
    const forged = { ...credential, value: await signWorkspaceSession({ key: new Uint8Array(32).fill(5) }) }
    await expect((await gateway()).signIn({ credential: forged, displayName: 'Bob' })).rejects.toThrow(
      'Unauthenticated',
    )
  })
})

describe('a console session', () => {
  it('ends on all cores when the operator signs out, and its streams end', async () => {
    const { sessionSecret } = await newSession()
    const watching = [cores.core, cores.other].map(async (core) => {
      await list(core, sessionSecret)
      const frames = clientsOf(core, `Console ${sessionSecret}`).messaging.watchConversations({
        workspaceId: cores.workspaceId,
      })
      for await (const _ of frames);
    })
    const ends = Promise.all(watching.map((each) => expect(each).rejects.toThrow('Unauthenticated')))
    await (await gateway()).signOut({ sessionSecret })
    await expect(list(cores.core, sessionSecret)).rejects.toThrow('Unauthenticated')
    await until('the other core to refuse the session', () =>
      list(cores.other, sessionSecret).then(
        () => false,
        (error: Error) => error.message.includes('Unauthenticated'),
      ),
    )
    await ends
    await (await gateway()).signOut({ sessionSecret })
    await (await gateway()).signOut({ sessionSecret: 'unknown' })
  })

  it('expires after 12 hours', async () => {
    const { sessionSecret } = await newSession()
    cores.advance(12 * 3_600 - 60)
    await list(cores.core, sessionSecret)
    cores.advance(61)
    await expect(list(cores.core, sessionSecret)).rejects.toThrow('Unauthenticated')
    await expect((await gateway()).getConsoleSession({ sessionSecret })).rejects.toThrow('Unauthenticated')
  })

  it('is stored without its secret', async () => {
    const link = await newLink()
    const { sessionSecret } = await newSession()
    const { consoleSessions, signInLinks } = cores.core.database.collections
    const stored = JSON.stringify([await consoleSessions.find().toArray(), await signInLinks.find().toArray()])
    expect(stored).toContain(createHash('sha256').update(`console ${sessionSecret}`).digest('base64url'))
    expect(stored).not.toContain(sessionSecret)
    expect(stored).not.toContain(link)
  })

  itLong('is removed with its workspace', async () => {
    const { workspaceId } = await createWorkspace(cores.core, 'Short')
    const { secret } = await (await admin()).createSignInLink({ workspaceId })
    const { sessionSecret } = await (await gateway()).signIn(byLink(secret))
    await (await admin()).createSignInLink({ workspaceId })
    await deleteObject(cores.core, 'workspace', workspaceId, undefined)
    const left = async () => {
      cores.advance(70)
      await runDueRemovals(cores.core)
      const { consoleSessions, signInLinks } = cores.core.database.collections
      return (
        (await consoleSessions.countDocuments({ workspaceId })) + (await signInLinks.countDocuments({ workspaceId }))
      )
    }
    await until('the sign-ins to be removed', async () => (await left()) === 0)
    await until('the session to end', () => hasFailed(list(cores.core, sessionSecret)))
  })
})
