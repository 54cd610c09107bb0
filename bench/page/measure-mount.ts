// Prints the longest main-thread task while the widget loads, opens and shows a long history, with
// 4x CPU throttling: `npm run bench -- mount`. Fails above 50 ms. Counts thread time only, so that
// other load on the machine does not distort the result.
import { launchChromium } from '../../test/support/chromium.ts'
import { openWidgetPage } from '../../test/support/widget-page.ts'
import { startScenarioServer } from '../../widget/test/scenario-server.ts'
import { readTrace } from './trace-times.ts'

const rounds = 5
const slowdown = 4
const limitMs = 50

const browser = await launchChromium()
const gateway = await startScenarioServer({ heartbeatMs: 1_000 })
const found: Record<string, number[]> = { 'launcher shown': [], 'first open': [], 'reopened with 50 messages': [] }

for (let round = 0; round < rounds; round += 1) {
  const { page, context, close } = await openWidgetPage({ browser, gateway })
  const devtools = await context.newCDPSession(page)
  await devtools.send('Emulation.setCPUThrottlingRate', { rate: slowdown })
  const launcher = page.locator('[data-service-widget] .launcher')

  const step = async (name: string, act: () => Promise<unknown>) => {
    await browser.startTracing(page, { categories: ['toplevel', 'devtools.timeline'] })
    await act()
    await page.waitForTimeout(300)
    found[name]!.push(readTrace(String(await browser.stopTracing())).longestTaskMs)
  }
  // A script clicks, because simulated input and polling add work that no visitor causes.
  const open = () =>
    page.evaluate(`new Promise((resolve) => {
      addEventListener('service-widget:ready', ({ detail }) => detail.widget.on('messages.changed', resolve))
      document.querySelector('[data-service-widget]').shadowRoot.querySelector('.launcher').click()
    }).then(() => undefined)`)

  await step('launcher shown', () => page.reload())
  await launcher.waitFor()
  await step('first open', open)
  const talk = gateway.conversation('pk_friendly')
  for (let count = 0; count < 50; count += 1) talk.agentSays(`Message ${count}, see https://shop.example/${count}`)
  await page.getByText('Message 49,').waitFor()
  await step('reopened with 50 messages', async () => {
    await page.reload()
    await page.evaluate(`document.querySelector('script[data-site-key]').serviceWidget.open()`)
  })
  await close()
}
await browser.close()
await gateway.close()

console.log(`Longest task in ms, ${rounds} rounds, ${slowdown}x CPU throttling`)
for (const [name, worst] of Object.entries(found))
  console.log(`${name.padEnd(28)}${worst.map((ms) => ms.toFixed(0).padStart(5)).join('')}`)
if (Object.values(found).some((worst) => worst.sort((a, b) => a - b)[rounds >> 1]! > limitMs)) process.exitCode = 1
