import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, CDPSession, Page } from 'playwright-core'
import { closeServer } from '../platform/http/bounded-server.ts'
import { launchChromium } from '../test/support/chromium.ts'
import { operatorOf } from '../test/support/operator.ts'
import { buildWidgetIfStale } from '../widget/build.ts'
import type { Figures, Part } from './measure.ts'
import { startService } from './service.ts'
import { median } from './table.ts'
import { readTrace } from './trace-times.ts'

const slowdown = 4
const maxScriptMs = 10
/** Time that is recorded after a step. */
const settleMs = 3_000

const observe = `
  const seen = globalThis.seen = { layoutShift: 0, interactionMs: 0 }
  new PerformanceObserver((list) => {
    for (const { value } of list.getEntries()) seen.layoutShift += value
  }).observe({ type: 'layout-shift', buffered: true })
  new PerformanceObserver((list) => {
    for (const { interactionId, duration } of list.getEntries())
      if (interactionId > 0) seen.interactionMs = Math.max(seen.interactionMs, duration)
  }).observe({ type: 'event', buffered: true, durationThreshold: 16 })`

const middle = (steps: Figures[], figure: string) => median(steps.map((step) => step[figure]!))

/**
 * Measures what the widget costs a page without other scripts, on a processor of a quarter of the speed. Times of
 * script and main thread are thread time at full speed, multiplied by four: Chromium's slowdown would also multiply
 * the effect of other load. Only the interaction is measured with it.
 */
export const part: Part = async ({ rounds, quick, log }) => {
  await buildWidgetIfStale()
  const { access, stop } = await startService()
  const gateway = `http://127.0.0.1:${access.ports[0]}`
  const site = createServer((request, response) => {
    const script = `<script src="${gateway}/widget.js" data-site-key="${access.siteKey}" defer></script>`
    response.setHeader('content-type', 'text/html; charset=utf-8').end(`<!doctype html><html lang="en"><head>
      <meta name="viewport" content="width=device-width"><title>A shop</title>
      ${request.url === '/with' ? script : ''}</head><body><h1>A shop</h1>
      ${'<p>Lamps for every room, delivered within two days.</p>'.repeat(40)}</body></html>`)
  })
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`
  const { workspaces } = operatorOf(access.coreUrl, access.serviceToken)
  await workspaces.updateInstallation({ siteKey: access.siteKey, origins: [origin] })
  const browser = await launchChromium()
  const visit = (path: '/with' | '/without', rate = 1) => visitPage(browser, { origin, gateway, path, rate })

  const [without, before, opened, slowed]: Figures[][] = [[], [], [], []]
  for (let round = 0; round < (quick ? 1 : Math.max(rounds, 5)); round += 1) {
    without!.push(...(await visit('/without')))
    const [closed, open] = await visit('/with')
    before!.push(closed!)
    opened!.push(open!)
    slowed!.push((await visit('/with', slowdown)).at(-1)!)
    log(`round ${round + 1}: ${JSON.stringify(closed)}`)
  }
  await browser.close()
  await closeServer(site)
  await stop()

  const slow = (steps: Figures[], figure: string) => slowdown * middle(steps, figure)
  const added = (figure: string) => Math.max(0, slow(before!, figure) - slow(without!, figure))
  const shift = middle([...before!, ...slowed!], 'layoutShift')
  if (added('scriptMs') > maxScriptMs || shift > 0) process.exitCode = 1
  const row = (name: string, one: number, other: number, unit: string, digits = 0) => ({
    name,
    cells: [one, other].map((value) => ({ values: Number.isNaN(value) ? [] : [value], unit, digits, missing: '' })),
  })
  const rows = [
    row('bytes', middle(before!, 'bytes') / 1024, middle(opened!, 'bytes') / 1024, 'KiB', 1),
    row('requests', middle(before!, 'requests'), middle(opened!, 'requests'), ''),
    row('script', added('scriptMs'), slow(opened!, 'scriptMs'), 'ms', 1),
    row('main thread', added('mainThreadMs'), slow(opened!, 'mainThreadMs'), 'ms'),
    row('longest task', slow(before!, 'longestTaskMs'), slow(opened!, 'longestTaskMs'), 'ms'),
    row('layout shift', shift, middle(slowed!, 'layoutShift'), '', 3),
    row('interaction to next paint', Number.NaN, middle(slowed!, 'interactionMs'), 'ms'),
  ]
  const notes = [
    'Published main-thread time of others before opening, on a slowed-down phone: Crisp 33 ms, Tawk 440 ms, Intercom 1,433 ms, Zendesk 2,157 ms.',
  ]
  return [{ title: 'What the widget costs a page', columns: ['', 'before opening', 'by opening'], rows, notes }]
}

/** Loads the page, and opens the chat if there is one. Returns the figures of both. */
async function visitPage(
  browser: Browser,
  { origin, gateway, path, rate }: { origin: string; gateway: string; path: string; rate: number },
): Promise<Figures[]> {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 } })
  const page = await context.newPage()
  const devtools = await context.newCDPSession(page)
  await devtools.send('Emulation.setCPUThrottlingRate', { rate })
  await devtools.send('Network.enable')
  await page.addInitScript({ content: observe })
  const step = (act: () => Promise<unknown>) => measureStep(browser, page, devtools, gateway, act)
  const steps = [await step(() => page.goto(`${origin}${path}`))]
  if (path === '/with') {
    // Playwright's own actions run scripts in the page.
    const { x, y, width, height } = (await page.locator('[data-service-widget] .launcher').boundingBox())!
    const click = { x: x + width / 2, y: y + height / 2, button: 'left', clickCount: 1 } as const
    const press = async () => {
      for (const type of ['mousePressed', 'mouseReleased'] as const)
        await devtools.send('Input.dispatchMouseEvent', { type, ...click })
    }
    steps.push(await step(press))
    if (!(await page.locator('[data-service-widget] textarea').isVisible())) throw new Error('the chat did not open')
  }
  await context.close()
  return steps
}

async function measureStep(
  browser: Browser,
  page: Page,
  devtools: CDPSession,
  gateway: string,
  act: () => Promise<unknown>,
): Promise<Figures> {
  const toGateway = new Set<string>()
  let bytes = 0
  const requested = ({ requestId, request }: { requestId: string; request: { url: string } }) => {
    if (request.url.startsWith(gateway)) toGateway.add(requestId)
  }
  const finished = ({ requestId, encodedDataLength }: { requestId: string; encodedDataLength: number }) => {
    if (toGateway.has(requestId)) bytes += encodedDataLength
  }
  devtools.on('Network.requestWillBeSent', requested).on('Network.loadingFinished', finished)
  await browser.startTracing(page, { categories: ['toplevel', 'devtools.timeline', 'v8'] })
  await act()
  await page.waitForTimeout(settleMs)
  const times = readTrace(String(await browser.stopTracing()))
  devtools.off('Network.requestWillBeSent', requested).off('Network.loadingFinished', finished)
  const seen = (await page.evaluate('({ ...globalThis.seen })')) as { layoutShift: number; interactionMs: number }
  return { ...times, ...seen, requests: toGateway.size, bytes }
}
