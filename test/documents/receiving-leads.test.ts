import { spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { refusal, startMailServer } from '../../core/test/mail-server.ts'
import { eventKindsDocument, integratingDocument, receivingDocument } from '../../dev/make/events.ts'
import { packWebhooks } from '../../dev/make/pack.ts'
import { checkReceiver, newSecret, sampleBody, signerOf, statusOf } from '../support/hostile-deliveries.ts'
import { itLong } from '../support/is-long.ts'
import { freePort, startProcess } from '../support/processes.ts'
import { until } from '../support/until.ts'

const root = join(import.meta.dirname, '../..')
const document = readFileSync(join(root, 'docs/receiving-leads.md'), 'utf8')
const [server = ''] = [...document.matchAll(/```ts\n(.*?)```/gs)].map(([, code]) => code)
const [byHand = ''] = [...document.matchAll(/```js\n(.*?)```/gs)].map(([, code]) => code)

// The folder is inside the project, so that the document's code can import the package.
mkdirSync(join(root, '.cache'), { recursive: true })
const folder = mkdtempSync(join(root, '.cache/receiving-leads-'))
const secret = newSecret()
const mailServer = await startMailServer()

afterAll(() => rmSync(folder, { recursive: true, force: true }))
beforeAll(() => packWebhooks(folder))

/** Runs the code of a document in a process of its own. */
async function startReceiver(name: string, code: string, env: NodeJS.ProcessEnv = {}) {
  const file = join(folder, name)
  writeFileSync(file, code)
  const port = await freePort()
  const child = spawn(process.execPath, [file], {
    env: { WEBHOOK_SECRET: secret, PORT: String(port), ...env },
    stdio: 'pipe',
  })
  const url = `http://127.0.0.1:${port}/`
  await until('the server', () =>
    fetch(url, { method: 'POST' }).then(
      () => true,
      () => false,
    ),
  )
  return { url, child }
}

itLong(
  'the recipe for own mails in docs/recipes.md mails each unseen answer once, and again only what failed',
  async () => {
    const [, code = ''] = /```ts\n(.*?)```/s.exec(readFileSync(join(root, 'docs/recipes.md'), 'utf8'))!
    const env = { SMTP_URL: mailServer.url, MAIL_FROM: 'shop@example.org', SITE_URL: 'https://shop.example/' }
    const { url, child } = await startReceiver('mailer.ts', code, env)
    const sign = signerOf(secret)
    const unseen = {
      reference: 'msg_1',
      conversationId: 'cnv_1',
      messageId: 'msg_1',
      sentAt: '2026-11-20T12:00:00.000Z',
    }
    const send = (id: string, data: object, more = {}) => {
      const content = {
        ...JSON.parse(sampleBody),
        eventType: 'message.unseen',
        data: { ...unseen, ...data },
        id,
        ...more,
      }
      const body = JSON.stringify(content)
      return statusOf(url, sign(id, { body }), body)
    }
    const mia = { email: 'mia@example.org' }
    try {
      expect(await Promise.all(Array.from({ length: 5 }, () => send('evt_1', mia)))).toEqual(Array(5).fill(204))
      expect(await send('evt_1', mia)).toBe(204)
      for (const [data, more] of [[{}], [mia, { test: true }], [mia, { eventType: 'lead.captured' }]] as const)
        expect(await send('evt_2', data, more)).toBe(204)
      expect(await send('evt_2', { email: 'eve@example.org, mallory@example.org\r\nBcc: all@example.org' })).not.toBe(
        204,
      )
      expect(mailServer.mails.map(({ to }) => to)).toEqual([['mia@example.org']])
      expect(mailServer.mails[0]).toMatchObject({ text: expect.stringContaining('https://shop.example/') })
      for (const [code, status] of [
        [451, 503],
        [550, 422],
      ] as const) {
        mailServer.answer = () => refusal(code)
        expect(await send('evt_3', mia)).toBe(status)
      }
      mailServer.answer = undefined
      expect(await send('evt_3', mia)).toBe(204)
      expect(mailServer.mails.map(({ headers }) => headers.get('message-id'))).toEqual([
        '<evt_1@shop.example>',
        '<evt_3@shop.example>',
      ])
    } finally {
      child.kill('SIGKILL')
    }
  },
)

describe('the code in docs/receiving-leads.md', () => {
  it('the code in docs/receiving-leads.md accepts valid signatures with the package, also during a rotation, and rejects forged or old signatures', async () => {
    const { url, child } = await startReceiver('server.ts', server)
    try {
      await checkReceiver(url, secret)
    } finally {
      child.kill('SIGKILL')
    }
  })

  it('the code in docs/receiving-leads.md accepts valid signatures with the manual check and rejects invalid signatures', async () => {
    const file = join(folder, 'by-hand.mjs')
    writeFileSync(file, byHand)
    const { isOurs } = await import(file)
    const bytes = Buffer.from(sampleBody)
    const signature = `sha256=${createHmac('sha256', secret).update(bytes).digest('hex')}`
    expect(isOurs(secret, bytes, signature)).toBe(true)
    expect(isOurs(secret, Buffer.from(`${sampleBody} `), signature)).toBe(false)
    expect(isOurs(secret, bytes, signature.replace('sha256=', ''))).toBe(false)
    expect(isOurs(secret, bytes, undefined)).toBe(false)
    // Test vector from GitHub's documentation of X-Hub-Signature-256.
    expect(
      isOurs(
        "It's a Secret to Everybody",
        'Hello, World!',
        'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
      ),
    ).toBe(true)
  })
})

describe('the example receiver', () => {
  it('the example receiver verifies signatures, prints each lead once and accepts repeated deliveries', async () => {
    const port = await freePort()
    const receiver = await startProcess({
      entry: 'docs/examples/receiver.ts',
      name: 'receiver',
      args: [secret, '--port', String(port)],
    })
    const url = `http://127.0.0.1:${port}/`
    await until('it to listen', () => receiver.output().includes('listening'))
    await checkReceiver(url, secret)
    await until('the receiver to print the duplicate', () => receiver.output().includes('duplicate: dlv_1'))
    expect(receiver.output().match(/^dlv_1 /gm)).toHaveLength(1)
    expect(receiver.output()).toContain('lead_1')
    expect(receiver.output()).not.toContain(secret)
  })
})

it('the table of the feed’s events in docs/integrating.md is up to date', () => {
  const integrating = readFileSync(join(import.meta.dirname, '../../docs/integrating.md'), 'utf8')
  expect(integrating).toBe(integratingDocument())
  expect(integrating).toContain('| `workflow.handoff` |')
})

it('the table of events in docs/receiving-leads.md is up to date', () => {
  expect(document).toBe(receivingDocument())
  expect(document).toContain('| `subscription.failing` | 1.0 | operational |')
})

it('the types of the events in webhooks/src/event-kinds.ts are up to date', () => {
  const kinds = readFileSync(join(root, 'webhooks/src/event-kinds.ts'), 'utf8')
  expect(kinds).toBe(eventKindsDocument())
  expect(kinds).toContain("'subscription.disabled': {")
})
