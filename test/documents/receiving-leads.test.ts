import { spawn } from 'node:child_process'
import { createHmac, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { afterAll, describe, expect, it } from 'vitest'
import { eventListModule, integratingDocument, receivingDocument } from '../../dev/write-events.ts'
import { freePort, startProcess } from '../support/processes.ts'
import { until } from '../support/until.ts'

const root = join(import.meta.dirname, '../..')
const document = readFileSync(join(root, 'docs/receiving-leads.md'), 'utf8')
const [server = '', byHand = ''] = [...document.matchAll(/```js\n(.*?)```/gs)].map(([, code]) => code)

// The folder is inside the project, so that the document's code can import the library.
const folder = mkdtempSync(join(root, 'node_modules/.receiving-leads-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const secret = `whsec_${randomBytes(32).toString('base64')}`
const body = JSON.stringify({
  eventType: 'lead.ready-for-delivery',
  id: 'dlv_1',
  data: { reference: 'lead_1', name: 'Zoë' },
})

function signed(id: string, at = new Date(), key = secret): Record<string, string> {
  return {
    'content-type': 'application/json',
    'x-service-webhook-version': '1.0',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(key).sign(id, at, body),
  }
}

async function statusOf(url: string, headers: Record<string, string>, content = body): Promise<number> {
  const answer = await fetch(url, { method: 'POST', headers, body: content })
  await answer.body?.cancel()
  return answer.status
}

async function checkReceiver(url: string) {
  expect(await statusOf(url, signed('dlv_1'))).toBe(204)
  const otherSecret = `whsec_${randomBytes(32).toString('base64')}`
  const other = new Webhook(otherSecret).sign('dlv_1', new Date(), body)
  const both = signed('dlv_1')
  both['webhook-signature'] = `${other} ${both['webhook-signature']}`
  expect(await statusOf(url, both)).toBe(204)
  expect(await statusOf(url, signed('dlv_1', new Date(), otherSecret))).toBe(401)
  expect(await statusOf(url, signed('dlv_1', new Date(Date.now() - 600_000)))).toBe(401)
  expect(await statusOf(url, signed('dlv_1'), `${body} `)).toBe(401)
  const { 'webhook-signature': _, ...unsigned } = signed('dlv_1')
  expect(await statusOf(url, unsigned)).toBe(401)

  const type = (text: string) => ({ ...signed('dlv_1'), 'content-type': text })
  for (const text of ['text/plain', 'application/jsonx', 'multipart/form-data; boundary=application/json'])
    expect([text, await statusOf(url, type(text))]).toEqual([text, 415])
  expect(await statusOf(url, type('application/json; charset=utf-8'))).toBe(204)
  const { 'x-service-webhook-version': __, ...unversioned } = signed('dlv_1')
  for (const version of ['1.1', '2.0', '1']) {
    expect(await statusOf(url, { ...unversioned, 'x-service-webhook-version': version })).toBe(400)
  }
  expect(await statusOf(url, unversioned)).toBe(400)
  expect(await statusOf(url, signed('dlv_2'), 'x'.repeat(70_000))).toBe(413)
  expect([413, 'closed']).toContain(await endOfEndlessBody(url))
  // A sender that disappears in the middle of a body does not stop the receiver.
  await abandonedRequest(url)
  expect(await statusOf(url, signed('dlv_1'))).toBe(204)
}

/**
 * Sends a body without end and without a length. Returns the status of the answer, or `closed` if the
 * receiver closed the connection while the body was still being sent.
 */
function endOfEndlessBody(url: string): Promise<number | string | undefined> {
  const { promise, resolve } = Promise.withResolvers<number | string | undefined>()
  const sending = request(url, { method: 'POST', headers: signed('dlv_3') }, (answer) => {
    answer.resume()
    resolve(answer.statusCode)
    sending.destroy()
  })
  const send = () => {
    while (!sending.destroyed && sending.write('x'.repeat(16_384)));
  }
  sending.on('drain', send).on('error', () => resolve('closed'))
  send()
  return promise
}

async function abandonedRequest(url: string): Promise<void> {
  const sending = request(url, { method: 'POST', headers: { ...signed('dlv_4'), 'content-length': '1000' } })
  sending.on('error', () => {})
  sending.write('{"half":')
  await once(sending, 'socket')
  await once(sending.socket!, 'connect')
  sending.destroy()
}

describe('the code in docs/receiving-leads.md', () => {
  it('the code in docs/receiving-leads.md accepts valid signatures with the library, also during a rotation, and rejects forged or old signatures', async () => {
    const file = join(folder, 'server.mjs')
    writeFileSync(file, server)
    const port = await freePort()
    const child = spawn(process.execPath, [file], {
      env: { WEBHOOK_SECRET: secret, PORT: String(port) },
      stdio: 'pipe',
    })
    try {
      const url = `http://127.0.0.1:${port}/`
      await until('the server', () =>
        fetch(url, { method: 'POST' }).then(
          () => true,
          () => false,
        ),
      )
      await checkReceiver(url)
    } finally {
      child.kill('SIGKILL')
    }
  })

  it('the code in docs/receiving-leads.md accepts valid signatures with the manual check and rejects invalid signatures', async () => {
    const file = join(folder, 'by-hand.mjs')
    writeFileSync(file, byHand)
    const { isOurs } = await import(file)
    const bytes = Buffer.from(body)
    const signature = `sha256=${createHmac('sha256', secret).update(bytes).digest('hex')}`
    expect(isOurs(secret, bytes, signature)).toBe(true)
    expect(isOurs(secret, Buffer.from(`${body} `), signature)).toBe(false)
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
    await checkReceiver(url)
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
  expect(readFileSync(join(root, 'contract/event-list.ts'), 'utf8')).toBe(eventListModule())
})
