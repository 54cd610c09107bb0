import { launchChromium } from '../test/support/chromium.ts'
import { openWidgetPage } from '../test/support/widget-page.ts'
import { startScenarioServer } from '../widget/test/scenario-server.ts'
import type { Part } from './measure.ts'
import { median } from './table.ts'
import { readTrace } from './trace-times.ts'

const slowdown = 4
const maxMs = 30
const longHistory = 1_000

/**
 * Measures the longest main-thread task of one more message among 1,000, in thread time, with the processor slowed
 * to a quarter.
 */
export const part: Part = async ({ rounds, log }) => {
  const browser = await launchChromium()
  const gateway = await startScenarioServer({ heartbeatMs: 1_000 })
  const values: number[] = []
  for (let round = 0; round < Math.max(rounds, 5); round += 1) {
    const { page, context, url, close } = await openWidgetPage({ browser, gateway })
    const devtools = await context.newCDPSession(page)
    // The first opening begins the conversation.
    await page.evaluate(`new Promise((resolve) => {
      addEventListener('service-widget:ready', ({ detail }) => detail.widget.on('messages.changed', resolve))
      document.querySelector('[data-service-widget]').shadowRoot.querySelector('.launcher').click()
    }).then(() => undefined)`)
    const talk = gateway.conversation('pk_friendly')
    await page.goto('about:blank')
    for (let count = 0; count < longHistory; count += 1) talk.agentSays(`Message ${count}`)
    await page.goto(url)
    await page.evaluate(`document.querySelector('script[data-site-key]').serviceWidget.open()`)
    // Scrolling to the beginning loads older messages.
    await page.evaluate(`new Promise((resolve) => {
      const timer = setInterval(() => {
        const scroller = document.querySelector('[data-service-widget]').shadowRoot.querySelector('.scroller')
        if (!scroller) return
        scroller.scrollTop = scroller.querySelectorAll('.row').length < ${longHistory} ? 0 : scroller.scrollHeight
        if (scroller.scrollTop < 1) return
        clearInterval(timer)
        resolve()
      }, 50)
    })`)
    await devtools.send('Emulation.setCPUThrottlingRate', { rate: slowdown })
    await browser.startTracing(page, { categories: ['toplevel', 'devtools.timeline'] })
    talk.agentSays('One more')
    await page.waitForTimeout(300)
    values.push(readTrace(String(await browser.stopTracing())).longestTaskMs)
    log(`round ${round + 1}: ${values.at(-1)} ms`)
    await close()
  }
  await browser.close()
  await gateway.close()
  if (median(values) > maxMs) process.exitCode = 1
  const rows = [{ name: 'one message among 1,000', cells: [{ values, unit: 'ms', digits: 1 }] }]
  return [{ title: 'Longest task', columns: ['', 'thread time'], rows, notes: [] }]
}
