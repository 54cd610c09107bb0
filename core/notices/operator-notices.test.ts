import { randomUUID } from 'node:crypto'
import { Code, createClient, type Transport } from '@connectrpc/connect'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { OperatorService } from '#proto/operator/v1/operator_pb.js'
import { itLong } from '../../test/support/is-long.ts'
import { testDatabase } from '../../test/support/test-database.ts'
import { until } from '../../test/support/until.ts'
import type { RunningCore } from '../context.ts'
import { assignAgent } from '../conversations/assignments.ts'
import { inboxOf } from '../conversations/inbox.ts'
import { sendAsAgent, sendAsVisitor } from '../conversations/messages.ts'
import { removeOperator } from '../operators/accounts.ts'
import { beginAccountSession, endConsoleSessions, signIn } from '../operators/console-sessions.ts'
import { secretId } from '../operators/model.ts'
import { addMember } from '../operators/teams.ts'
import { hasFailed, startTestCores, type TestCores, type TestVisitor } from '../test/cores.ts'
import { startMailServer } from '../test/mail-server.ts'
import { startPushServer } from '../test/push-server.ts'
import { transportTo } from '../test/transports.ts'
import { updateInstallation } from '../workspaces/workspaces.ts'
import { tellOperators } from './operator-notices.ts'
import { pushAuthoritiesOf } from './push.ts'

const database = testDatabase()
const mail = await startMailServer()
const push = await startPushServer()
let cores: TestCores
let visitor: TestVisitor
type Operator = Awaited<ReturnType<typeof newOperator>>
let ada: Operator

beforeAll(async () => {
  const env = {
    SMTP_URL: mail.url,
    SMTP_FROM: 'Shop <desk@shop.example>',
    PUBLIC_URL: 'https://chat.shop.example',
    DELIVERY_ALLOWED_CIDRS: '127.0.0.0/8',
    GRANT_LIFETIME_SECONDS: '86400',
  }
  cores = await startTestCores(database, { count: 2, started: false, env })
  for (const core of cores.cores) pushAuthoritiesOf.set(core, push.ca)
})
afterAll(() => cores.stop())
beforeEach(async () => {
  push.pushes.length = 0
  push.status = 201
  mail.mails.length = 0
  // Operators of earlier tests are told nothing more.
  await cores.core.database.collections.teams.deleteMany({})
  visitor = await cores.newVisitor(await cores.newSite())
  ada = await newOperator('Ada')
})

const all = { newConversation: true, answerInMine: true, waitingMinutes: 5, detail: 'nothing', mailMinutes: 0 }

async function newOperator(name: string, address?: string) {
  const { workspaceId } = visitor
  const id = `op_${randomUUID()}`
  await addMember(cores.core, workspaceId, { id, name, role: 'operator', ...(address && { mail: address }) })
  const { secret } = await beginAccountSession(cores.core, { workspaceId, operator: id, method: 'link' }, '')
  return { id, secret, calls: callsOf(cores.core, secret) }
}

function callsOf(core: RunningCore, secret: string) {
  const inMemory = transportTo(core)
  const transport: Transport = {
    unary: (method, signal, timeoutMs, _header, input) =>
      inMemory.unary(method, signal, timeoutMs, { authorization: `Console ${secret}` }, input),
    stream: inMemory.stream,
  }
  return createClient(OperatorService, transport)
}

async function subscribe({ calls }: Operator, notifications: Partial<typeof all> = {}) {
  await calls.updateOwnNotifications({ notifications: { ...all, ...notifications } })
  const { publicKey } = await calls.getOwnNotifications({})
  await calls.setPushSubscription(push.subscribe(publicKey))
}

const write = (body = 'Do you deliver?') =>
  sendAsVisitor(cores.other, {
    credentials: visitor.credentials,
    clientOperationId: randomUUID(),
    body,
    contentType: 'text',
  }).then(() => inboxOf(cores.other).noted())
async function answer() {
  const { conversationId } = visitor
  const sent = { conversationId, clientOperationId: randomUUID(), body: 'Yes', agent: { displayName: 'Ada' } }
  await sendAsAgent(cores.core, sent)
  await inboxOf(cores.core).noted()
}
/** Lets time pass, and lets all cores tell at the same time, twice. */
async function pass(minutes = 0) {
  cores.advance(minutes * 60)
  await Promise.all([...cores.cores, ...cores.cores].map(tellOperators))
}
const titles = () => push.pushes.map(({ payload }) => payload.title)

it('an operator who looks at a conversation gets the names of the others who look at it', async () => {
  const olga = await newOperator('Olga')
  const eve = await newOperator('Eve')
  const report = async ({ calls }: Operator, conversationId = visitor.conversationId, looking = true) =>
    (await calls.reportAttention({ looking, conversationId })).others
  expect(await report(ada)).toEqual([])
  expect(await report(olga)).toEqual(['Ada'])
  expect(await report(eve, 'cnv_other')).toEqual([])
  expect(await report(eve, '')).toEqual([])
  expect(await report(ada)).toEqual(['Olga'])
  await report(olga, '', false)
  expect(await report(ada)).toEqual([])
  await report(olga)
  cores.advance(60)
  expect(await report(ada)).toEqual([])
  await expect(report(ada, 'x'.repeat(65))).rejects.toMatchObject({ code: Code.InvalidArgument })
})

describe('an operator who does not look', () => {
  it('gets one encrypted push for a new conversation, and one when the visitor has waited', async () => {
    await subscribe(ada)
    await write()
    await write('Hello?')
    await pass()
    expect(push.pushes).toHaveLength(1)
    const [{ payload, headers } = expect.fail()] = push.pushes
    const { conversationId } = visitor
    expect(payload).toEqual({
      title: 'New conversation',
      body: '',
      path: `/console/conversations/${conversationId}`,
      tag: conversationId,
    })
    expect(headers).toMatchObject({ 'content-encoding': 'aes128gcm', urgency: 'high', ttl: '3600' })
    await pass(4)
    expect(titles()).toHaveLength(1)
    await pass(1.1)
    expect(titles()).toEqual(['New conversation', 'A visitor waits'])
    await answer()
    await pass(30)
    await write('And when?')
    await pass()
    expect(titles()).toHaveLength(3)
  })

  it('sees in a push what the operator has chosen', async () => {
    await subscribe(ada, { detail: 'name' })
    const ben = await newOperator('Ben')
    await subscribe(ben, { detail: 'text' })
    await write(`<b> ${'ö'.repeat(300)}`)
    await pass()
    const bodies = push.pushes.map(({ payload }) => payload.body)
    expect(bodies.toSorted()).toEqual(['Visitor', `Visitor: <b> ${'ö'.repeat(156)}…`])
  })

  it('hears of answers in own conversations only, and of those of others only when they wait', async () => {
    const ben = await newOperator('Ben')
    await subscribe(ada)
    await subscribe(ben, { newConversation: false, waitingMinutes: 0 })
    const { conversationId, workspaceId } = visitor
    await assignAgent(cores.core, conversationId, { displayName: 'Ben' }, workspaceId, ben.id)
    await write()
    await pass()
    expect(titles()).toEqual(['New message in your conversation'])
    await pass(6)
    expect(titles()).toEqual(['New message in your conversation', 'A visitor waits'])
  })

  it('hears of a waiting conversation when a colleague hands it over', async () => {
    await subscribe(ada, { newConversation: false, waitingMinutes: 0 })
    await write()
    await pass()
    expect(titles()).toEqual([])
    const { conversationId, workspaceId } = visitor
    await assignAgent(cores.core, conversationId, { displayName: 'Ada' }, workspaceId, ada.id)
    await pass()
    expect(titles()).toEqual(['New message in your conversation'])
  })

  it.each<[string, () => Promise<unknown>]>([
    ['looks at the console', () => ada.calls.reportAttention({ looking: true })],
    ['has chosen nothing', () => ada.calls.updateOwnNotifications({ notifications: { detail: 'nothing' } })],
    ['has signed out', () => endConsoleSessions(cores.other, { id: secretId(ada.secret) })],
    [
      'was removed',
      async () => {
        const caller = { tokenId: '', subject: 'x', scopes: new Set(['*']), expiresAt: 0 }
        const scopes = { has: () => true } as unknown as Set<string>
        await newOperator('Olga')
        await removeOperator(cores.other, { ...caller, scopes }, visitor.workspaceId, ada.id)
      },
    ],
    ['has stopped pushes in this browser', () => ada.calls.setPushSubscription({})],
    ['is told nothing while the website is closed', () => setMode('away')],
    ['is asked too late, because the visitor has an answer', () => answer()],
  ])('gets nothing who %s', async (_, act) => {
    await subscribe(ada)
    await write()
    await act()
    await pass()
    await pass(1)
    expect(push.pushes).toEqual([])
  })

  const setMode = (mode: 'away' | 'auto') =>
    updateInstallation(cores.core, visitor.publicSiteKey, { availability: { mode } }, undefined)

  it('is told at the opening what came shortly before it', async () => {
    await subscribe(ada)
    await setMode('away')
    await write()
    await pass(2)
    expect(push.pushes).toEqual([])
    await setMode('auto')
    await pass(1)
    expect(titles()).toEqual(['New conversation'])
  })

  it('is told again while the push service fails, and its browser is forgotten when it is gone', async () => {
    await subscribe(ada)
    await write()
    push.status = 503
    await pass()
    push.status = 302
    await pass()
    expect(push.pushes).toEqual([])
    push.status = 201
    await pass()
    expect(titles()).toEqual(['New conversation'])
    push.status = 410
    await pass(6)
    expect(await ada.calls.getOwnNotifications({})).toMatchObject({ pushed: false, mail: true })
    const { requests } = push
    await write()
    await pass()
    expect(push.requests).toBe(requests)
  })

  itLong('is told once, no matter after which write a core dies', async () => {
    await subscribe(ada, { waitingMinutes: 0 })
    await cores.untilOneSurvives(async (mortal) => {
      pushAuthoritiesOf.set(mortal, push.ca)
      push.pushes.length = 0
      visitor = await cores.newVisitor(visitor as never)
      await write()
      const died = await hasFailed(tellOperators(mortal))
      await pass()
      expect(titles()).toEqual(['New conversation'])
      return died
    })
  })

  it('gets one mail after the chosen time, if the visitor still waits', async () => {
    const ben = await newOperator('Ben', 'ben@shop.example')
    const notifications = { ...all, waitingMinutes: 1, detail: 'text', mailMinutes: 10 }
    await ben.calls.updateOwnNotifications({ notifications })
    await write('Line one\nBcc: eve@example.org')
    await pass(9)
    expect(mail.mails).toEqual([])
    await pass(2)
    await pass(20)
    await until('the mail', () => mail.mails.length > 0)
    expect(mail.mails).toHaveLength(1)
    const [{ to, headers, text } = expect.fail()] = mail.mails
    expect(to).toEqual(['ben@shop.example'])
    expect(headers.get('subject')).toBe('New conversation · Shop')
    expect(headers.has('bcc')).toBe(false)
    expect(text).toContain('Visitor: Line one')
    expect(text).toContain(`https://chat.shop.example/console/conversations/${visitor.conversationId}`)
  })

  it('is told in the language of the console at which the operator looked last', async () => {
    const ben = await newOperator('Ben', 'ben@shop.example')
    for (const language of ['en', 'de', '']) await ben.calls.reportAttention({ looking: false, language })
    await expect(ben.calls.reportAttention({ language: 'xx' })).rejects.toThrow('ValidationFailed')
    await subscribe(ben, { detail: 'name', mailMinutes: 10 })
    await write()
    await pass()
    expect(push.pushes.map(({ payload: { title, body } }) => ({ title, body }))).toEqual([
      { title: 'Neue Unterhaltung', body: 'Besucher' },
    ])
    await pass(11)
    await until('the mail', () => mail.mails.length === 1)
    await ben.calls.updateOwnAccount({ mail: 'benno@shop.example' })
    await until('the mails', () => mail.mails.length === 2)
    expect(mail.mails.map(({ headers }) => headers.get('subject'))).toEqual([
      'Neue Unterhaltung · Shop',
      'Bestätigen Sie Ihre E-Mail-Adresse für Shop',
    ])
    expect(mail.mails.map(({ text }) => text).join()).not.toMatch(/visitor|Hello|link makes/i)
  })
})

describe('a push subscription', () => {
  const valid = () => push.subscribe('')
  it.each([
    ['http://example.com/push'],
    ['https://10.0.0.1/push'],
    ['https://169.254.169.254/latest'],
    ['https://[::1]/push'],
    ['https://0x7f.1:x/'],
    ['https://user:password@127.0.0.1/push'],
    ['file:///etc/passwd'],
    [`https://127.0.0.1/${'x'.repeat(3_000)}`],
  ])('is refused for the endpoint %s', async (endpoint) => {
    await expect(ada.calls.setPushSubscription({ ...valid(), endpoint })).rejects.toThrow('ValidationFailed')
  })

  it('is refused with broken keys', async () => {
    for (const broken of [{ auth: '' }, { auth: 'AAAA' }, { p256dh: `${valid().p256dh}AA` }, { p256dh: '../..' }])
      await expect(ada.calls.setPushSubscription({ ...valid(), ...broken })).rejects.toThrow('ValidationFailed')
  })

  it('is stored sealed, and all cores use the same keys', async () => {
    await subscribe(ada)
    const [session] = await cores.core.database.collections.consoleSessions.find({ operator: ada.id }).toArray()
    expect(JSON.stringify(session)).not.toContain('/push/')
    const keys = await Promise.all(
      cores.cores.map(async (core) => (await callsOf(core, ada.secret).getOwnNotifications({})).publicKey),
    )
    expect(keys[0]).toBe(keys[1])
  })

  it.each([{ waitingMinutes: 241 }, { mailMinutes: 9_999 }, { detail: 'everything' }])(
    'choices are checked: %o',
    async (broken) => {
      await expect(ada.calls.updateOwnNotifications({ notifications: { ...all, ...broken } })).rejects.toThrow(
        'ValidationFailed',
      )
    },
  )
})

describe('a new mail address', () => {
  const secretIn = (text: string) => /#confirm-mail=([\w-]{43})\s/.exec(text)![1]!
  const ownMail = async () => (await ada.calls.getOwnAccount({})).operator!.mail

  it('counts when its owner opens the mailed link, once, in the own account', async () => {
    const changed = await ada.calls.updateOwnAccount({ name: 'Ada L.', mail: 'New@example.org' })
    expect(changed).toMatchObject({ confirmationMailed: true, operator: { name: 'Ada L.', mail: '' } })
    await until('the mail', () => mail.mails.length === 1)
    const secret = secretIn(mail.mails[0]!.text)
    expect(mail.mails[0]!.to).toEqual(['new@example.org'])
    const ben = await newOperator('Ben')
    await expect(ben.calls.confirmOwnMail({ secret })).rejects.toThrow('ValidationFailed')
    const linkSecret = { linkSecret: secret }
    await expect(signIn(cores.core, linkSecret, 'Eve', '')).rejects.toThrow('Unauthenticated')
    expect(await ownMail()).toBe('')
    await ada.calls.confirmOwnMail({ secret })
    expect(await ownMail()).toBe('new@example.org')
    await expect(ada.calls.confirmOwnMail({ secret })).rejects.toThrow('ValidationFailed')
  })

  it('is mailed three links a day at most, and none to an address of a colleague', async () => {
    await newOperator('Ben', 'ben@example.org')
    await expect(ada.calls.updateOwnAccount({ mail: 'ben@example.org' })).rejects.toThrow('ValidationFailed')
    for (let count = 0; count < 3; count += 1) await ada.calls.updateOwnAccount({ mail: `ada${count}@example.org` })
    await expect(ada.calls.updateOwnAccount({ mail: 'ada3@example.org' })).rejects.toThrow('ValidationFailed')
    await until('the mails', () => mail.mails.length === 3)
    expect((await ada.calls.updateOwnAccount({ mail: '' })).confirmationMailed).toBe(false)
  })
})
