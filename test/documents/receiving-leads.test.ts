import { spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventKindsDocument, eventListModule, integratingDocument, receivingDocument } from '../../dev/make/events.ts'
import { packWebhooks } from '../../dev/make/pack.ts'
import { checkReceiver, newSecret, sampleBody } from '../support/hostile-deliveries.ts'
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

afterAll(() => rmSync(folder, { recursive: true, force: true }))
beforeAll(() => packWebhooks(folder))

describe('the code in docs/receiving-leads.md', () => {
  it('the code in docs/receiving-leads.md accepts valid signatures with the package, also during a rotation, and rejects forged or old signatures', async () => {
    const file = join(folder, 'server.ts')
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
  expect(readFileSync(join(root, 'contract/event-list.ts'), 'utf8')).toBe(eventListModule())
})

it('the types of the events in webhooks/src/event-kinds.ts are up to date', () => {
  const kinds = readFileSync(join(root, 'webhooks/src/event-kinds.ts'), 'utf8')
  expect(kinds).toBe(eventKindsDocument())
  expect(kinds).toContain("'subscription.disabled': {")
})
