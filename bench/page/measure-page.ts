// Prints how much time the widget takes in a page on a processor of a quarter of the speed: `npm
// run bench -- page`. The page, the gateway and the core are real; the page has no other script.
// Script and main-thread times are thread time at full speed, multiplied by four. They are not
// measured with Chromium's slowdown, because it would also multiply the effect of other load on the
// machine. Only the interaction is measured with that slowdown. Fails if the widget takes more than
// 10 ms of script before it is opened, or shifts the layout.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, CDPSession, Page } from 'playwright-core'
import { launchChromium } from '../../test/support/chromium.ts'
import { cleanUp } from '../../test/support/clean-up.ts'
import { startStack } from '../../test/support/stack.ts'
import { buildWidgetIfStale } from '../../widget/build.ts'
import { median } from '../table.ts'
import { readTrace, type TraceTimes } from './trace-times.ts'

const rounds = 5
const slowdown = 4
const maxScriptMs = 10
/** Time in milliseconds that is recorded after a step. */
const settleMs = 3_000

/**
 * Published main-thread times of other chats before they are opened, in milliseconds, on a
 * slowed-down phone.
 */
const published = { Crisp: 33, Tawk: 440, Intercom: 1_433, Zendesk: 2_157 }

/** Script of the page: collects layout shifts and the durations of interactions. */
const observe = `
  const seen = globalThis.seen = { layoutShift: 0, interactionMs: 0 }
  new PerformanceObserver((list) => {
    for (const { value } of list.getEntries()) seen.layoutShift += value
  }).observe({ type: 'layout-shift', buffered: true })
  new PerformanceObserver((list) => {
    for (const { interactionId, duration } of list.getEntries())
      if (interactionId > 0) seen.interactionMs = Math.max(seen.interactionMs, duration)
  }).observe({ type: 'event', buffered: true, durationThreshold: 16 })`

interface Step extends TraceTimes {
  requests: number
  bytes: number
  layoutShift: number
  /** Duration of the slowest interaction: from the input to the next paint. */
  interactionMs: number
}

await buildWidgetIfStale()
const stack = await startStack({})
const gateway = stack.gateways[0]!.url
const site = createServer((request, response) => {
  const script = `<script src="${gateway}/widget.js" data-site-key="${siteKey}" defer></script>`
  response.setHeader('content-type', 'text/html; charset=utf-8').end(`<!doctype html><html lang="en"><head>
    <meta name="viewport" content="width=device-width"><title>A shop</title>
    ${request.url === '/with' ? script : ''}</head><body><h1>A shop</h1>
    ${'<p>Lamps for every room, delivered within two days.</p>'.repeat(40)}</body></html>`)
})
await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve))
const origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`
const { workspaces } = stack.operator()
const { workspaceId } = stack.demo
const { connection } = await workspaces.createConnection({ workspaceId, name: 'A shop' })
const { connectionId } = connection!
const siteKey = (await workspaces.createInstallation({ connectionId, origins: [origin] })).installation!.publicSiteKey

const browser = await launchChromium()
const found = { without: [] as Step[], before: [] as Step[], opened: [] as Step[], slowed: [] as Step[] }
for (let round = 0; round < rounds; round += 1) {
  found.without.push(...(await visit('/without')))
  const [before, opened] = await visit('/with')
  found.before.push(before!)
  found.opened.push(opened!)
  found.slowed.push((await visit('/with', slowdown)).at(-1)!)
}
await browser.close()
site.closeAllConnections()
site.close()
await cleanUp()

const middle = (steps: Step[], field: keyof Step) => median(steps.map((step) => step[field]))
type Time = keyof TraceTimes
const slow = (steps: Step[], field: Time) => slowdown * middle(steps, field)
/**
 * Returns the time that the widget adds: the time of the page with the widget minus the time
 * without it.
 */
const added = (field: Time) => Math.max(0, slow(found.before, field) - slow(found.without, field))
const kib = (bytes: number) => `${(bytes / 1024).toFixed(1)} KiB`
const ms = (value: number) => `${value.toFixed(0)} ms`
const shift = middle([...found.before, ...found.slowed], 'layoutShift')
const rows: [name: string, before: string, opened: string][] = [
  ['bytes', kib(middle(found.before, 'bytes')), kib(middle(found.opened, 'bytes'))],
  ['requests', `${middle(found.before, 'requests')}`, `${middle(found.opened, 'requests')}`],
  ['script', `${added('scriptMs').toFixed(1)} ms`, ms(slow(found.opened, 'scriptMs'))],
  ['main thread', ms(added('mainThreadMs')), ms(slow(found.opened, 'mainThreadMs'))],
  ['longest task', ms(slow(found.before, 'longestTaskMs')), ms(slow(found.opened, 'longestTaskMs'))],
  ['layout shift', shift.toFixed(3), middle(found.slowed, 'layoutShift').toFixed(3)],
  ['interaction to next paint', '', ms(middle(found.slowed, 'interactionMs'))],
]
console.log('|  | before opening | by opening |\n| --- | --- | --- |')
for (const cells of rows) console.log(`| ${cells.join(' | ')} |`)
const others = Object.entries(published).map(([name, time]) => `${name} ${time.toLocaleString('en')}`)
console.log(`\nMedians of ${rounds} rounds. Published main-thread ms of others: ${others.join(', ')}`)
if (added('scriptMs') > maxScriptMs || shift > 0) process.exitCode = 1

/** Loads the page, and opens the chat if the page has it. Returns the figures of both steps. */
async function visit(path: '/with' | '/without', rate = 1): Promise<Step[]> {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 } })
  const page = await context.newPage()
  const devtools = await context.newCDPSession(page)
  await devtools.send('Emulation.setCPUThrottlingRate', { rate })
  await devtools.send('Network.enable')
  await page.addInitScript({ content: observe })
  const steps = [await measure(browser, page, devtools, () => page.goto(`${origin}${path}`))]
  if (path === '/with') {
    // Send the click over the DevTools protocol, because Playwright's own actions run scripts in
    // the page.
    const { x, y, width, height } = (await page.locator('[data-service-widget] .launcher').boundingBox())!
    const click = { x: x + width / 2, y: y + height / 2, button: 'left', clickCount: 1 } as const
    steps.push(
      await measure(browser, page, devtools, async () => {
        for (const type of ['mousePressed', 'mouseReleased'] as const)
          await devtools.send('Input.dispatchMouseEvent', { type, ...click })
      }),
    )
    if (!(await page.locator('[data-service-widget] textarea').isVisible())) throw new Error('the chat did not open')
  }
  await context.close()
  return steps
}

async function measure(browser: Browser, page: Page, devtools: CDPSession, act: () => Promise<unknown>): Promise<Step> {
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
  const seen = (await page.evaluate('({ ...globalThis.seen })')) as Pick<Step, 'layoutShift' | 'interactionMs'>
  return { ...times, ...seen, requests: toGateway.size, bytes }
}
