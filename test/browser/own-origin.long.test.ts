import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer, request, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { beforeAll, expect, it } from 'vitest'
import { buildWidgetIfStale, widgetDist } from '../../widget/build.ts'
import { sharedChromium } from '../support/chromium.ts'
import { atFileEnd } from '../support/clean-up.ts'
import { listen } from '../support/listen.ts'
import { useLocalStack } from '../support/local-stack.ts'
import { until } from '../support/until.ts'
import { inWidget, open, say } from './widget-under-test.ts'

let origin: string
/** The forwarded requests to the API. */
const calls: { method: string; path: string; origin: string | undefined }[] = []

/** A reverse proxy that serves the site itself, and forwards the API to a gateway with the browser's `Host`. */
async function startSite(gatewayUrl: string, siteKey: string): Promise<string> {
  const site = createServer((incoming, outgoing) => {
    const { method = '', url = '', headers } = incoming
    if (!url.startsWith('/api/integrations/')) return void serveSite(url, outgoing)
    calls.push({ method, path: url, origin: headers.origin })
    const forwarded = request(new URL(url, gatewayUrl), { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(outgoing)
    })
    forwarded.on('error', () => outgoing.destroy())
    outgoing.on('close', () => forwarded.destroy())
    incoming.pipe(forwarded)
  })

  /** Serves the page, and the files of the widget's package. */
  async function serveSite(path: string, answer: ServerResponse) {
    const isScript = path.endsWith('.js')
    answer.writeHead(200, { 'Content-Type': `text/${isScript ? 'javascript' : 'html'}; charset=utf-8` })
    const script = `<script src="/widget.js" data-site-key="${siteKey}" defer></script>`
    const html = `<!doctype html><html lang="en"><title>A shop</title><body><h1>A shop</h1>${script}</body></html>`
    answer.end(isScript ? await readFile(join(widgetDist, path)).catch(() => '') : html)
  }

  await buildWidgetIfStale()
  return (await listen(site, 'localhost')).url
}

const stack = useLocalStack({ env: { RATE_LIMIT_FACTOR: '20' } })
beforeAll(async () => {
  const { siteKey } = stack.demo
  origin = await startSite(stack.gateways[0]!.url, siteKey)
  await stack.operator().workspaces.updateInstallation({ siteKey, origins: [origin] })
})

async function openSite(): Promise<Page> {
  const browser = await sharedChromium()
  const context = await browser.newContext({ reducedMotion: 'reduce', locale: 'en-GB' })
  context.setDefaultTimeout(90_000)
  atFileEnd(() => context.close())
  const page = await context.newPage()
  await page.goto(origin)
  return page
}

it('C7.7 a widget on a page of the gateway’s own origin chats, and keeps its session after a reload', async () => {
  const page = await openSite()
  await open(page)
  await say(page, 'Do you ship to Graz?')
  await page.getByText(/· Sent$/).waitFor()

  const { messaging } = stack.operator()
  const { workspaceId } = stack.demo
  const { conversationId } = await until(
    'the conversation',
    async () => (await messaging.listConversations({ workspaceId })).conversations[0],
  )
  const agentSays = (body: string) =>
    messaging.sendAgentMessage({ conversationId, clientOperationId: randomUUID(), body, agent: { displayName: 'Ada' } })
  await agentSays('We do.')
  await page.getByText('We do.').waitFor()

  await page.reload()
  await inWidget(page, '.field').waitFor()
  await agentSays('Within two days.')
  for (const text of ['Do you ship to Graz?', 'We do.', 'Within two days.']) await page.getByText(text).waitFor()

  const sent = (method: string, path: string) =>
    calls.filter((call) => call.method === method && call.path.includes(`/widget/${path}`))
  expect(sent('POST', 'sessions').length).toBe(1)
  // The browser sends no `Origin` with these requests, so the test covers what it is about.
  for (const path of ['config/', 'messages', 'events'])
    expect(new Set(sent('GET', path).map((call) => call.origin))).toEqual(new Set([undefined]))
})
