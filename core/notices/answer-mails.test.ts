import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { damaged } from '../../test/support/nasty-values.ts'
import { testDatabase } from '../../test/support/test-database.ts'
import { inboxOf } from '../conversations/inbox.ts'
import { recordReceipt } from '../conversations/message-states.ts'
import { sendAsAgent } from '../conversations/messages.ts'
import { tellUnseenMessages } from '../conversations/unseen-messages.ts'
import { captureLead, submitForm } from '../deliveries/lead-capture.ts'
import { redactMessage } from '../deliveries/redactions.ts'
import { addSuppressions } from '../deliveries/suppressing.ts'
import { findConversations } from '../log/conversation-store.ts'
import { exportVisitor } from '../privacy/visitor-data.ts'
import { startTestCores, type TestCores, type TestVisitor } from '../test/cores.ts'
import { refusal, startMailServer } from '../test/mail-server.ts'
import { visitorOf } from '../test/visitor-marks.ts'
import type { InstallationSettings } from '../workspaces/model.ts'
import { updateInstallation } from '../workspaces/workspaces.ts'
import { sendAnswerMails, stopMails } from './answer-mails.ts'

const database = testDatabase()
const server = await startMailServer()
const publicUrl = 'https://chat.shop.example'
let cores: TestCores
let visitor: TestVisitor

beforeAll(async () => {
  const env = {
    SMTP_URL: server.url,
    SMTP_FROM: 'Shop <desk@shop.example>',
    PUBLIC_URL: publicUrl,
    GRANT_LIFETIME_SECONDS: '86400',
  }
  cores = await startTestCores(database, { count: 2, started: false, env })
})
afterAll(() => cores.stop())
beforeEach(() => {
  server.mails.length = 0
  server.answer = undefined
  server.recipient = undefined
})

const form = [{ name: 'mail', label: 'Mail', type: 'email' as const, required: true, maxLength: 254 }]
const appearance = { title: 'Blumen Ada' }

async function newVisitor(settings: InstallationSettings = {}, sign = true) {
  const capabilities = { offlineForm: true }
  visitor = await cores.newVisitor(
    await cores.newSite({ capabilities, forms: { offline: form }, appearance, ...settings }),
  )
  if (sign) await leaveAddress()
}
const leaveAddress = (mail = 'Mia@Example.org') =>
  submitForm(cores.core, {
    credentials: visitor.credentials,
    form: 'offline',
    fields: { mail },
    idempotencyKey: randomUUID(),
  })

async function answer(body = 'Yes, tomorrow.', displayName = 'Ada') {
  const { conversationId } = visitor
  const { event } = await sendAsAgent(cores.core, {
    conversationId,
    clientOperationId: randomUUID(),
    body,
    agent: { displayName },
  })
  await inboxOf(cores.core).noted()
  return event
}

/** Lets time pass, and lets all cores look and send. */
async function pass(minutes = 11, all = cores.cores) {
  cores.advance(minutes * 60)
  await Promise.all(all.map((core) => tellUnseenMessages(core)))
  await Promise.all(all.map((core) => sendAnswerMails(core)))
}
const stored = async () => (await findConversations(cores.core, [visitor.conversationId]))[0]
const see = (upToSequence: number) =>
  recordReceipt(cores.core, { credentials: visitor.credentials, upToSequence, state: 'read' })

describe('the mail of an unseen answer', () => {
  it('has text and HTML, the site’s name and the ways to the chat and out of it, once for each absence', async () => {
    await newVisitor()
    await answer('Yes, tomorrow. <b>&')
    await answer('At nine.\nOr later?', 'Ben')
    await pass()
    await pass(30)
    expect(server.mails).toHaveLength(1)
    const [{ to, headers, text, html } = expect.fail()] = server.mails
    expect(to).toEqual(['Mia@example.org'])
    expect(headers.get('from')).toBe('Blumen Ada <desk@shop.example>')
    expect(headers.get('subject')).toBe('New answer from Blumen Ada')
    expect(headers.get('auto-submitted')).toBe('auto-generated')
    expect(headers.get('list-unsubscribe-post')).toBe('List-Unsubscribe=One-Click')
    const stopUrl = headers.get('list-unsubscribe')!.slice(1, -1)
    expect(stopUrl).toMatch(new RegExp(`^${publicUrl}/mail/en/[\\w.-]+$`))
    expect(stopUrl).not.toContain(visitor.conversationId)
    expect(text).toContain('Ada:\nYes, tomorrow. <b>&\n\nBen:\nAt nine.\nOr later?\n')
    for (const part of ['Replies do not reach the chat.', stopUrl, 'https://shop.example'])
      for (const content of [text, html]) expect(content).toContain(part)
    expect(html).toContain('Yes, tomorrow. &lt;b&gt;&amp;')
    expect(await stored()).toMatchObject({ mail: { state: 'sent', attempts: 1 } })
    const exported: object[] = []
    for await (const line of exportVisitor(cores.core, await visitorOf(cores, visitor))) exported.push(JSON.parse(line))
    expect(exported).toContainEqual(
      expect.objectContaining({ kind: 'conversation', mail: expect.objectContaining({ state: 'sent', attempts: 1 }) }),
    )

    await see((await answer()).sequence)
    await answer('And now?')
    await pass()
    expect(server.mails).toHaveLength(2)
    expect(server.mails[1]!.text).toContain('Ada:\nAnd now?')
    expect(server.mails[1]!.text).not.toContain('tomorrow')
  })

  it.each([
    ['Mia@Example.org', 'Mia@example.org'],
    ['info@groß.example', 'info@xn--gro-7ka.example'],
    ['info@GROSS.example', 'info@gross.example'],
    ['straße@kunde.example', 'straße@kunde.example'],
    ['ısparta@kunde.example', 'ısparta@kunde.example'],
    ['a@βόλος.example', 'a@xn--nxasmm1c.example'],
    ['a@نامه\u200cای.example', 'a@xn--mgba3gch31f060k.example'],
  ])('goes to %s as the visitor wrote it', async (written, recipient) => {
    await newVisitor({}, false)
    await leaveAddress(` ${written}\u200b`)
    await answer()
    await pass()
    expect(server.mails.map(({ headers }) => headers.get('to'))).toEqual([recipient])
  })

  it.each(['INFO@GROSS.example', 'info@xn--gro-7ka.example', 'info@groß.example'])(
    'is not sent to info@groß.example if the person is suppressed as %s',
    async (value) => {
      await newVisitor({}, false)
      await leaveAddress('info@groß.example')
      const entries = [{ kind: 'email' as const, value }]
      await addSuppressions(cores.core, { workspaceId: visitor.workspaceId, entries, reason: '', addedBy: 'op' })
      await answer()
      await pass()
      expect(server.mails).toEqual([])
    },
  )

  it('is in the visitor’s language, and leads to the page on which the visitor was', async () => {
    await newVisitor({
      defaultLocale: 'en',
      appearance: { title: 'زهور', translations: { ar: { title: 'زهور آدا' } } },
    })
    await cores.core.database.collections.sessions.updateOne(
      { _id: visitor.sessionId },
      { $set: { locale: 'ar-EG', pageContext: { url: 'https://shop.example/تجربة' } } },
    )
    await answer('نعم')
    await pass()
    const [{ headers, text, html } = expect.fail()] = server.mails
    expect(headers.get('subject')).toBe('رد جديد من زهور آدا')
    expect(html).toContain('<html lang="ar" dir="rtl">')
    expect(html).toContain('https://shop.example/')
    expect(text).toContain('https://shop.example/')
    await cores.core.database.collections.sessions.updateOne(
      { _id: visitor.sessionId },
      { $set: { pageContext: { url: 'https://evil.example/' } } },
    )
    await see((await answer()).sequence)
    await answer()
    await pass()
    expect(server.mails[1]!.text).not.toContain('evil.example')
  })

  it.each<[string, () => Promise<unknown>]>([
    ['it was seen meanwhile', async () => see((await stored())!.lastSequence!)],
    [
      'it was withdrawn meanwhile',
      async () => {
        const { conversationId, lastSequence } = (await stored())!
        const redactor = { workspaceId: undefined, subject: 'svc', anyAuthor: true }
        await redactMessage(cores.core, { conversationId, sequence: lastSequence! }, redactor)
      },
    ],
    [
      'the person is suppressed meanwhile',
      () =>
        addSuppressions(cores.other, {
          workspaceId: visitor.workspaceId,
          entries: [{ kind: 'email', value: 'mia@EXAMPLE.org' }],
          reason: '',
          addedBy: 'op',
        }),
    ],
    [
      'the conversation is being erased',
      () =>
        cores.core.database.collections.conversations.updateOne(
          { _id: visitor.conversationId },
          { $set: { erasing: true } },
        ),
    ],
    [
      'the website mails nothing',
      () => updateInstallation(cores.core, visitor.publicSiteKey, { mailUnseenAnswers: false }, undefined),
    ],
    [
      'the website requires a consent that was not given',
      () =>
        updateInstallation(
          cores.core,
          visitor.publicSiteKey,
          { consent: { required: true, policyUrl: 'https://shop.example/p', policyVersion: '2' } },
          undefined,
        ),
    ],
  ])('is not sent if %s', async (_, act) => {
    await newVisitor()
    await answer()
    cores.advance(11 * 60)
    await tellUnseenMessages(cores.core)
    expect((await stored())!.mail).toMatchObject({ state: 'waiting' })
    await act()
    await pass(5)
    await pass(60)
    expect(server.mails).toEqual([])
  })

  it('is not sent to an address that only a service has added', async () => {
    await newVisitor({}, false)
    const { workspaceId, conversationId } = visitor
    const fields = { email: 'mia@example.org' }
    await captureLead(cores.core, { workspaceId, source: 'crm', fields, conversationId }, undefined)
    await answer()
    await pass()
    expect(server.mails).toEqual([])
  })

  it('is not sent after the visitor has stopped mails, and a damaged token stops nothing', async () => {
    await newVisitor()
    await answer()
    await pass()
    const token = server.mails[0]!.headers.get('list-unsubscribe')!.slice(1, -1).split('/').at(-1)!
    await expect(stopMails(cores.core, damaged(token))).rejects.toThrow('NotFound')
    await expect(stopMails(cores.core, cores.core.secretBox.seal(visitor.conversationId))).rejects.toThrow('NotFound')
    await stopMails(cores.other, token)
    await see((await answer()).sequence)
    await answer()
    await pass()
    expect(server.mails).toHaveLength(1)
  })

  itLong('is sent once, no matter after which write a core dies, and by how many cores', async () => {
    await cores.untilOneSurvives(async (mortal) => {
      server.mails.length = 0
      await newVisitor()
      await answer()
      cores.advance(11 * 60)
      const died = await tellUnseenMessages(mortal)
        .then(() => sendAnswerMails(mortal))
        .then(
          async () => (await stored())!.mail?.state !== 'sent',
          () => true,
        )
      await pass(6)
      await pass(60)
      expect(server.mails).toHaveLength(1)
      return died
    })
  })

  it('is sent again after the server has refused it, and not after it was refused for good or its fate is unknown', async () => {
    await newVisitor()
    const refusals = [refusal(451), refusal(451)]
    server.answer = () => refusals.pop()
    await answer()
    await pass()
    expect(await stored()).toMatchObject({ mail: { state: 'waiting', attempts: 1 } })
    await pass(2)
    await pass(6)
    expect(server.mails).toHaveLength(1)
    expect(await stored()).toMatchObject({ mail: { state: 'sent', attempts: 3 } })

    await newVisitor()
    server.recipient = () => refusal(550)
    await answer()
    await pass()
    await pass(600)
    expect(await stored()).toMatchObject({ mail: { state: 'refused', attempts: 1 } })

    server.recipient = undefined
    await newVisitor()
    server.answer = () => void server.cut()
    await answer()
    await pass()
    server.answer = undefined
    await pass(600)
    expect(await stored()).toMatchObject({ mail: { state: 'sending', attempts: 1 } })
    expect(server.mails).toHaveLength(2)
  })

  it('waits while the server cannot be reached', async () => {
    const dead = await startTestCores(database, {
      started: false,
      env: { SMTP_URL: 'smtp://127.0.0.1:1', SMTP_FROM: 'a@b.example', PUBLIC_URL: publicUrl },
    })
    await newVisitor()
    await answer()
    cores.advance(11 * 60)
    await tellUnseenMessages(cores.core)
    dead.advance(3_600 * 24 * 30)
    await expect(sendAnswerMails(dead.core)).rejects.toThrow()
    expect(await stored()).toMatchObject({ mail: { state: 'waiting', attempts: 0 } })
    await pass()
    expect(server.mails).toHaveLength(1)
    await dead.stop()
  })

  it('keeps names with line breaks and signs of headers inside their header', async () => {
    await newVisitor({ appearance: { title: 'Shop\nBcc: eve@example.org\n <x@y.example>, "Q\\"' } })
    await answer('Hello\n.\nBcc: eve@example.org', 'Eve X-Evil: 1')
    await pass()
    const [{ to, headers } = expect.fail()] = server.mails
    expect(to).toEqual(['Mia@example.org'])
    expect(headers.has('bcc')).toBe(false)
    expect(headers.has('x-evil')).toBe(false)
    expect(headers.get('from')).toMatch(/<desk@shop\.example>$/)
  })

  it('cuts long answers', async () => {
    await newVisitor()
    for (let count = 0; count < 5; count += 1) await answer('🦋'.repeat(4_000))
    await pass()
    const [{ text } = expect.fail()] = server.mails
    expect([...text].filter((point) => point === '🦋')).toHaveLength(12_000)
  })
})
