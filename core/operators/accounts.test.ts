import { createClient, type Transport } from '@connectrpc/connect'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { ConsoleService } from '#proto/console/v1/console_pb.js'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { OperatorRole, OperatorService, OperatorState } from '#proto/operator/v1/operator_pb.js'
import { until } from '../../test/support/until.ts'
import type { RunningCore } from '../context.ts'
import { inboxOf } from '../conversations/inbox.ts'
import { testCores } from '../test/cores.ts'
import { transportTo } from '../test/transports.ts'
import { accessOf } from '../transport/caller.ts'
import { operatorScopes } from '../workspaces/workspace-sessions.ts'
import { createWorkspace, findWorkspace } from '../workspaces/workspaces.ts'

const cores = testCores({ count: 2 })

function clientsOf(core: RunningCore, authorization: string) {
  const inMemory = transportTo(core)
  const transport: Transport = {
    unary: (method, signal, timeoutMs, _header, input) =>
      inMemory.unary(method, signal, timeoutMs, { authorization }, input),
    stream: (method, signal, timeoutMs, _header, input) =>
      inMemory.stream(method, signal, timeoutMs, { authorization }, input),
  }
  return {
    console: createClient(ConsoleService, transport),
    messaging: createClient(MessagingService, transport),
    team: createClient(OperatorService, transport),
  }
}

const service = async (scopes: string[], core = cores.core, workspaceId?: string) =>
  clientsOf(core, `Bearer ${await accessOf(core).issue({ subject: 'shell', scopes, workspaceId })}`)
const gateway = async (core = cores.core) => (await service(['visitors:act'], core)).console
const shell = () => service([...operatorScopes])

async function signIn(value: string, { displayName = 'Ada', replacedSecret = '', core = cores.core } = {}) {
  const credential = { case: 'linkSecret' as const, value }
  const answer = await (await gateway(core)).signIn({ credential, displayName, replacedSecret })
  return { ...answer, ...clientsOf(core, `Console ${answer.sessionSecret}`), id: answer.session!.operator }
}

type Signed = Awaited<ReturnType<typeof signIn>>

async function newOwner(displayName = 'Olga') {
  const { workspaceId } = await createWorkspace(cores.core, 'Shop')
  const { secret } = await (await shell()).console.createSignInLink({ workspaceId, owner: true })
  return { workspaceId, ...(await signIn(secret, { displayName })) }
}

async function newMember(owner: Signed, role: OperatorRole, displayName: string, core = cores.core) {
  const { secret } = await owner.team.inviteOperator({ role })
  return signIn(secret, { displayName, core })
}

const at = (core: RunningCore, { sessionSecret }: Signed) => clientsOf(core, `Console ${sessionSecret}`)
const fails = (call: Promise<unknown>) =>
  call.then(
    () => 'answered',
    (error: Error) => error.message,
  )
const { OWNER, OPERATOR, VIEWER } = OperatorRole

describe('the first owner', () => {
  it('comes from a link of the shell, names the workspace, and gets the same account from the next such link', async () => {
    const { workspaceId } = await createWorkspace(cores.core, 'Shop')
    const link = async () => (await (await shell()).console.createSignInLink({ workspaceId, owner: true })).secret
    const first = await link()
    expect(await (await gateway()).getSignInLink({ linkSecret: first })).toMatchObject({
      workspaceName: 'Shop',
      firstOwner: true,
      invitation: true,
    })
    const credential = { case: 'linkSecret' as const, value: first }
    const named = { credential, displayName: 'Olga', workspaceName: 'Olga’s Shop' }
    await expect((await gateway()).signIn({ ...named, workspaceName: 'a\nb' })).rejects.toThrow('ValidationFailed')
    const { session } = await (await gateway()).signIn(named)
    expect(session).toMatchObject({ displayName: 'Olga', account: true, scopes: [...operatorScopes] })
    expect((await findWorkspace(cores.core, workspaceId)).name).toBe('Olga’s Shop')

    const second = await link()
    const known = await (await gateway()).getSignInLink({ linkSecret: second })
    expect(known).toMatchObject({ name: 'Olga', firstOwner: false, invitation: false })
    const again = await signIn(second, { displayName: '' })
    expect(again.session).toMatchObject({ operator: session!.operator, displayName: 'Olga' })
    expect((await again.team.listOperators({})).operators).toMatchObject([
      { name: 'Olga', role: OWNER, state: OperatorState.ACTIVE },
    ])
  })

  it('is nothing that a caller of one workspace, or with fewer scopes, can ask for; nor is any link for an account', async () => {
    const { workspaceId, console: own } = await newOwner()
    expect(await fails(own.createSignInLink({ operator: 'somebody else' }))).toContain('PermissionDenied')
    const few = await service(['workspaces:write'])
    for (const calls of [own, few.console, (await service([...operatorScopes], cores.core, workspaceId)).console])
      expect(await fails(calls.createSignInLink({ workspaceId, owner: true }))).toContain('PermissionDenied')
  })
})

describe('an invitation', () => {
  let owner: Awaited<ReturnType<typeof newOwner>>
  beforeAll(async () => {
    owner = await newOwner()
  })

  it('makes an account with the scopes of its role, which works on every core', async () => {
    const operator = await newMember(owner, OPERATOR, 'Ada')
    const viewer = await newMember(owner, VIEWER, 'Vera', cores.other)
    for (const core of cores.cores) {
      await at(core, viewer).messaging.listConversations({})
      expect(await fails(at(core, viewer).messaging.saveReply({ shortcut: 'a', body: 'b' }))).toContain('Permission')
      await at(core, operator).messaging.saveReply({ shortcut: 'a', body: 'b' })
      expect(await fails(at(core, operator).team.inviteOperator({ role: VIEWER }))).toContain('PermissionDenied')
      expect(await fails(at(core, operator).team.removeOperator({ operatorId: viewer.id }))).toContain('Permission')
    }
    expect(viewer.session!.scopes.every((scope) => scope.endsWith(':read'))).toBe(true)
    const { operators } = await viewer.team.listOperators({})
    expect(operators.map(({ name, role }) => [name, role])).toEqual([
      ['Ada', OPERATOR],
      ['Olga', OWNER],
      ['Vera', VIEWER],
    ])
  })

  it('works once, also for twenty concurrent calls on two cores', async () => {
    const { secret } = await owner.team.inviteOperator({ role: VIEWER, mail: 'race@example.org' })
    const calls = Array.from({ length: 20 }, (_, index) =>
      fails(signIn(secret, { displayName: `Racer ${index}`, core: cores.cores[index % 2]! })),
    )
    const answers = await Promise.all(calls)
    expect(answers.filter((answer) => answer === 'answered')).toHaveLength(1)
    expect(answers.filter((answer) => answer.includes('Unauthenticated'))).toHaveLength(19)
    const { operators } = await owner.team.listOperators({})
    expect(operators.filter(({ mail }) => mail === 'race@example.org')).toHaveLength(1)
  })

  it('ends after seven days, when it is revoked, and with the account that made it', async () => {
    const second = await newMember(owner, OWNER, 'Otto')
    const lasting = await owner.team.inviteOperator({ role: VIEWER })
    const revoked = await owner.team.inviteOperator({ role: VIEWER })
    const byLeaver = await second.team.inviteOperator({ role: OWNER, mail: 'otto@elsewhere.example' })
    const { invitations } = await owner.team.listInvitations({})
    expect(invitations.map(({ invitationId }) => invitationId)).toContain(byLeaver.invitation!.invitationId)
    const { signInLinks } = cores.core.database.collections
    expect(JSON.stringify(await signInLinks.find().toArray())).not.toContain(lasting.secret)
    await owner.team.revokeInvitation({ invitationId: revoked.invitation!.invitationId })
    await owner.team.removeOperator({ operatorId: second.id })
    for (const { secret } of [revoked, byLeaver]) expect(await fails(signIn(secret))).toContain('Unauthenticated')
    cores.advance(7 * 86_400 - 60)
    expect((await (await gateway()).getSignInLink({ linkSecret: lasting.secret })).invitation).toBe(true)
    cores.advance(61)
    expect(await fails(signIn(lasting.secret))).toContain('Unauthenticated')
  })

  it.each<[string, (team: Signed['team'], operatorId: string) => Promise<unknown>]>([
    ['removed', (team, operatorId) => team.removeOperator({ operatorId })],
    ['made a viewer', (team, operatorId) => team.setOperatorRole({ operatorId, role: VIEWER })],
  ])('is refused if its owner is %s on another core while it is stored', async (_, end) => {
    for (const into of [{ role: OWNER }, { operatorId: owner.id }]) {
      const second = await newMember(owner, OWNER, 'Otto', cores.other)
      const { signInLinks } = cores.other.db
      const insert = signInLinks.insertOne.bind(signInLinks)
      vi.spyOn(signInLinks, 'insertOne').mockImplementationOnce(async (link) => {
        await end(owner.team, second.id)
        return insert(link)
      })
      const { secret, invitation } = await second.team.inviteOperator(into)
      for (const core of cores.cores) {
        expect(await fails((await gateway(core)).getSignInLink({ linkSecret: secret }))).toContain('Unauthenticated')
        expect(await fails(signIn(secret, { core }))).toContain('Unauthenticated')
        const { invitations } = await at(core, owner).team.listInvitations({})
        expect(invitations.map(({ invitationId }) => invitationId)).not.toContain(invitation!.invitationId)
      }
    }
  })

  it('stays valid after an attempt that failed because another account had its address', async () => {
    const mail = 'ines@example.org'
    const { secret } = await owner.team.inviteOperator({ role: VIEWER, mail })
    const taker = await newMember(owner, VIEWER, 'Tom')
    await taker.team.updateOwnAccount({ mail })
    expect(await fails(signIn(secret, { displayName: 'Ines' }))).toContain('ValidationFailed')
    await taker.team.updateOwnAccount({ mail: '' })
    expect((await signIn(secret, { displayName: 'Ines' })).session).toMatchObject({ displayName: 'Ines' })
  })

  it('needs every scope of the role that it gives, and a name and address that are free', async () => {
    const few = await service(['workspaces:write', 'workspaces:read'], cores.core, owner.workspaceId)
    expect(await fails(few.team.inviteOperator({ role: VIEWER }))).toContain('PermissionDenied')
    expect(await fails(few.team.inviteOperator({ operatorId: owner.id }))).toContain('PermissionDenied')
    expect(await fails(owner.team.inviteOperator({}))).toContain('ValidationFailed')
    expect(await fails(owner.team.inviteOperator({ role: VIEWER, mail: 'a@b\nBcc: c@d.example' }))).toContain('Valid')
    await owner.team.updateOwnAccount({ mail: 'Olga@Example.org' })
    expect(await fails(owner.team.inviteOperator({ role: VIEWER, mail: 'olga@example.org' }))).toContain('Valid')
    const { secret } = await owner.team.inviteOperator({ role: VIEWER })
    expect(await fails(signIn(secret, { displayName: '' }))).toContain('ValidationFailed')
    expect(await fails(signIn(secret))).toBe('answered')
  })
})

describe('an account', () => {
  it('that is removed ends on all cores with its streams and links, and its name stays readable', async () => {
    const owner = await newOwner()
    const leaver = await newMember(owner, OPERATOR, 'Lea')
    const { secret: way } = await owner.team.inviteOperator({ operatorId: leaver.id })
    const watched = new Set<RunningCore>()
    const streams = cores.cores.map(async (core) => {
      await at(core, leaver).messaging.listConversations({})
      for await (const _ of at(core, leaver).messaging.watchConversations({})) watched.add(core)
    })
    const ends = Promise.all(streams.map((each) => expect(each).rejects.toThrow('Unauthenticated')))
    await until('both streams', () => watched.size === cores.cores.length)
    await at(cores.other, owner).team.removeOperator({ operatorId: leaver.id })
    for (const core of cores.cores)
      expect(await fails(at(core, leaver).messaging.listConversations({}))).toContain('Unauthenticated')
    await ends
    expect(await fails(signIn(way))).toContain('Unauthenticated')
    expect((await owner.team.listOperators({})).operators.map(({ name }) => name)).toEqual(['Olga'])
    const { operators } = await owner.team.listOperators({ includeRemoved: true })
    expect(operators).toMatchObject([{ name: 'Lea', state: OperatorState.REMOVED, mail: '' }, { name: 'Olga' }])
    expect((await owner.team.listSessions({})).sessions.map(({ name }) => name)).toEqual(['Olga'])
    expect(await fails(owner.team.removeOperator({ operatorId: leaver.id }))).toContain('NotFound')
  })

  it('with another role has its scopes at once on every core, and its new name', async () => {
    const owner = await newOwner()
    const member = await newMember(owner, VIEWER, 'Mia')
    await owner.team.setOperatorRole({ operatorId: member.id, role: OPERATOR })
    await at(cores.other, member).messaging.saveReply({ shortcut: 'a', body: 'b' })
    await at(cores.other, member).team.updateOwnAccount({ name: ' Mia M. ' })
    const { session } = await (await gateway()).getConsoleSession({ sessionSecret: member.sessionSecret })
    expect(session).toMatchObject({ displayName: 'Mia M.', operator: member.id })
    await owner.team.setOperatorRole({ operatorId: member.id, role: VIEWER })
    const denied = fails(at(cores.other, member).messaging.saveReply({ shortcut: 'a', body: 'b' }))
    expect(await denied).toContain('PermissionDenied')
  })

  it('keeps its conversations when its name changes', async () => {
    const owner = await newOwner()
    const member = await newMember(owner, OPERATOR, 'Mia')
    const site = await cores.newSite({}, owner.workspaceId)
    const visitor = await cores.newVisitor(site)
    const { conversationId } = visitor
    await cores.send(visitor, 'Hello')
    // From now on, the other core lists the conversation.
    await inboxOf(cores.core).noted()
    const { conversation } = await owner.messaging.assignAgent({ conversationId, operatorId: member.id })
    expect(conversation).toMatchObject({ agent: { displayName: 'Mia' }, assignedOperatorId: member.id })
    await member.team.updateOwnAccount({ name: 'Mia Married' })
    const mine = { assignee: { case: 'operatorId' as const, value: member.id }, countForOperator: member.id }
    const listed = await at(cores.other, member).messaging.listConversations({ ...mine, status: 1 })
    expect(listed.conversations).toMatchObject([{ conversationId, agent: { displayName: 'Mia' } }])
    expect(listed.counts).toMatchObject({ mine: 1, unassigned: 0 })
    // A caller that only knows the name assigns the operator with that name.
    const agent = { displayName: 'Olga' }
    const byName = await owner.messaging.assignAgent({ conversationId, agent })
    expect(byName.conversation).toMatchObject({ agent, assignedOperatorId: owner.id })
    const nobody = await owner.messaging.assignAgent({ conversationId, agent: { displayName: 'Robot' } })
    expect(nobody.conversation?.assignedOperatorId).toBeUndefined()
    expect(await fails(owner.messaging.assignAgent({ conversationId, operatorId: 'op_none' }))).toContain('Valid')
  })

  it('of the last owner can neither be removed nor changed, also if two owners remove each other on two cores', async () => {
    const alone = await newOwner()
    expect(await fails(alone.team.removeOperator({ operatorId: alone.id }))).toContain('LastOwner')
    expect(await fails(alone.team.setOperatorRole({ operatorId: alone.id, role: VIEWER }))).toContain('LastOwner')
    for (let round = 0; round < 5; round += 1) {
      const one = await newOwner()
      const other = await newMember(one, OWNER, 'Otto', cores.other)
      const answers = await Promise.all([
        fails(at(cores.core, one).team.removeOperator({ operatorId: other.id })),
        fails(at(cores.other, other).team.setOperatorRole({ operatorId: one.id, role: VIEWER })),
        fails(at(cores.core, one).team.removeOperator({ operatorId: one.id })),
        fails(at(cores.other, other).team.removeOperator({ operatorId: other.id })),
      ])
      expect(answers.filter((answer) => answer === 'answered').length).toBeLessThan(4)
      const team = await cores.core.db.teams.findOne({ _id: one.workspaceId })
      const owners = team!.members.filter(({ role, state }) => role === 'owner' && state === 'active')
      expect(owners.length).toBeGreaterThan(0)
    }
  })
})

describe('sessions', () => {
  it('are listed to their operator and to owners, and end on every core', async () => {
    const owner = await newOwner()
    const member = await newMember(owner, OPERATOR, 'Mia')
    const { secret } = await owner.team.inviteOperator({ operatorId: member.id })
    const second = await signIn(secret, { core: cores.other })
    const { sessions } = await member.team.listSessions({})
    expect(sessions.map(({ current, method }) => [current, method])).toEqual([
      [false, 'invitation'],
      [true, 'invitation'],
    ])
    const [ofOwner] = (await owner.team.listSessions({})).sessions.filter(({ current }) => current)
    await member.team.endSession({ consoleSessionId: ofOwner!.consoleSessionId })
    await owner.messaging.listConversations({})
    await owner.team.endSession({ consoleSessionId: sessions[0]!.consoleSessionId })
    expect(await fails(at(cores.core, second).messaging.listConversations({}))).toContain('Unauthenticated')
    await until('the other core to refuse the session', async () =>
      (await fails(second.messaging.listConversations({}))).includes('Unauthenticated'),
    )
    await member.messaging.listConversations({})
  })

  it('of a link of the shell have no account of their own', async () => {
    const { workspaceId, id } = await newOwner()
    const { secret } = await (await shell()).console.createSignInLink({
      workspaceId,
      operator: id,
      scopes: ['messages:read'],
    })
    const { team, session } = await signIn(secret)
    expect(session).toMatchObject({ account: false, scopes: ['messages:read'] })
    for (const call of [team.getOwnAccount({}), team.updateOwnAccount({ name: 'Eve' }), team.beginPasskey({})])
      expect(await fails(call)).toContain('PermissionDenied')
  })

  it('begin with a new secret, and the one before them ends', async () => {
    const owner = await newOwner()
    const { secret } = await owner.team.inviteOperator({ role: VIEWER })
    const next = await signIn(secret, { replacedSecret: owner.sessionSecret })
    expect(next.sessionSecret).not.toBe(owner.sessionSecret)
    expect(await fails(owner.messaging.listConversations({}))).toContain('Unauthenticated')
  })
})
