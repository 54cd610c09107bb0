// Takes the console screenshots of the documents, after `npm start`: `npm run make -- images`.
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { signAssertion } from '../../../test/support/assertion.ts'
import { launchChromium } from '../../../test/support/chromium.ts'
import { operatorOf } from '../../../test/support/operator.ts'
import { startVisitor } from '../../../test/support/visitor.ts'
import { readDevConfig } from '../../config.ts'
import type { DemoFile } from '../../demo-seed.ts'

const images = join(import.meta.dirname, '../../../docs/images')
const desktop = { width: 1440, height: 900 }
const views = [
  { name: 'console', viewport: desktop, colorScheme: 'light' },
  { name: 'console-phone', viewport: { width: 390, height: 844 }, colorScheme: 'light' },
] as const

const demo: DemoFile = JSON.parse(await readFile(join(readDevConfig().DATA_DIR, 'demo.json'), 'utf8'))
const { messaging } = operatorOf(demo.coreUrl, demo.serviceToken)

/** Returns the id of the last one, which has a verified customer. */
async function createConversations() {
  let latest = ''
  for (const [index, lines] of [
    ['The code WINTER does not work for me'],
    ['Is the showroom open on Saturday?'],
    ['Do you ship to Graz?', 'We do. It takes two days, and from 60 euros on it is free.', 'And if it does not fit?'],
  ].entries()) {
    const visitor = await startVisitor({ gatewayUrl: demo.gatewayUrl, origin: demo.origin, siteKey: demo.siteKey })
    const claims = { sub: 'customer-4711', name: 'Maria Huber', ctx: { plan: 'gold', orders: 12 } }
    const assertion = signAssertion({ siteKey: demo.siteKey, ...demo.identity }, { claims })
    if (index === 2) {
      const identified = await visitor.call('POST', '/sessions/identify', {
        body: { assertion },
        headers: { 'Idempotency-Key': randomUUID() },
      })
      if (identified.status !== 200) throw new Error(`identify: ${JSON.stringify(identified.body)}`)
      visitor.session = identified.body
    }
    const page = {
      url: `${demo.origin}/jackets/alpine`,
      title: 'Alpine jacket',
      viewport: { width: 1280, height: 720 },
    }
    await visitor.call('POST', '/context/page', { body: page })
    const { conversationId } = visitor.session
    for (const [turn, body] of lines.entries()) {
      if (turn % 2 === 0) await visitor.send(body)
      else {
        const clientOperationId = randomUUID()
        await messaging.sendAgentMessage({ conversationId, clientOperationId, body, agent: { displayName: 'Ada' } })
      }
    }
    latest = conversationId
  }
  return latest
}

const conversationId = await createConversations()
const browser = await launchChromium()
for (const { name, ...look } of views) {
  const page = await (await browser.newContext({ ...look, reducedMotion: 'reduce' })).newPage()
  await page.goto(`${demo.gatewayUrl}/console/conversations/${conversationId}`)
  await page.getByLabel('Or paste a token').fill(demo.workspaceSession)
  await page.getByLabel('Your name').fill('Ada')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.locator('.message', { hasText: 'And if it does not fit?' }).last().waitFor()
  await page.locator('.details', { hasText: 'customer-4711' }).waitFor({ state: 'attached' })
  await page.screenshot({ path: join(images, `${name}.png`) })
  await page.context().close()
}
await browser.close()
