import { beforeAll, describe, expect, it } from 'vitest'
import type { FakeCore } from './fake-core.ts'
import { playScene } from './scene.ts'
import { accessibilityFindings, consoleBrowser } from './test-console.ts'

const browser = consoleBrowser()
let core: FakeCore
let empty: FakeCore
beforeAll(async () => {
  core = await browser.newCore()
  await playScene(core)
  empty = await browser.newCore()
})

const views: [path: string, shows: string | RegExp][] = [
  ['conversations', 'Maria Huber'],
  ['conversations/cnv_maria', 'And if it does not fit?'],
  ['conversations/cnv_q1z6', 'كم تكلفة الشحن إلى دبي؟'],
  ['conversations/cnv_maria/details', 'customer-4711'],
  ['leads', 'Li Wei'],
  ['leads/lead_maria', 'maria@example.org'],
  ['deliveries', 'Dead letter'],
  ['deliveries/dlv_1', /connection refused/],
  ['subscriptions', '3 held'],
  ['subscriptions/new', 'Fields to send'],
  ['subscriptions/sub_old', /rejected the signature/],
  ['installations', 'Website'],
  ['installations/pk_shop', 'Capabilities'],
]
const empties: [path: string, shows: string | RegExp][] = [
  ['conversations', 'No conversations yet'],
  ['leads', 'No leads yet'],
  ['leads/lead_nowhere', 'This does not exist, or belongs to another workspace.'],
  ['deliveries', 'No deliveries yet'],
  ['subscriptions', 'No subscriptions yet'],
  ['installations', 'No connections yet'],
  ['nowhere', 'Page not found'],
]
const desktop = { width: 1440, height: 900 }
const phone = { width: 390, height: 844 }
const looks = [
  { name: 'light', colorScheme: 'light', viewport: desktop },
  { name: 'dark', colorScheme: 'dark', viewport: desktop },
  { name: 'dark on a phone', colorScheme: 'dark', viewport: phone },
  { name: 'light on a phone', colorScheme: 'light', viewport: phone },
] as const

/** Loads each view once and checks it in both colour schemes and both widths. */
async function look(at: FakeCore, paths: typeof views) {
  const { page, complaints, close } = await browser.open(at, 'conversations')
  const found: string[] = []
  for (const [path, shows] of paths) {
    await page.setViewportSize(desktop)
    await page.goto(`${at.url}/console/${path}`)
    await page.locator('main').getByText(shows).filter({ visible: true }).first().waitFor()
    for (const { name, colorScheme, viewport } of looks) {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize(viewport)
      found.push(...(await accessibilityFindings(page)).map((finding) => `${path}, ${name}: ${finding}`))
      const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)
      if (wide) found.push(`${path}, ${name}: scrolls sideways`)
    }
  }
  await close()
  return { found, complaints }
}

describe('every view, light and dark, on desktop and phone', () => {
  it('shows its content without accessibility or content security policy violations', {
    timeout: 180_000,
  }, async () => {
    expect(await look(core, views)).toEqual({ found: [], complaints: [] })
  })

  it('of an empty workspace shows a placeholder without violations', { timeout: 120_000 }, async () => {
    expect(await look(empty, empties)).toEqual({ found: [], complaints: [] })
  })
})
