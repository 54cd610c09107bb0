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
  ['leads', 'Li Wei'],
  ['leads/lead_maria', 'maria@example.org'],
  ['deliveries', 'Dead letter'],
  ['deliveries/dlv_1', /connection refused/],
  ['subscriptions', '3 held'],
  ['subscriptions/new', 'Fields that it gets'],
  ['subscriptions/sub_old', /refused the signature/],
  ['installations', 'Website'],
  ['installations/pk_shop', 'Capabilities'],
]
const empties: [path: string, shows: string | RegExp][] = [
  ['conversations', 'All quiet'],
  ['leads', 'No leads yet'],
  ['deliveries', 'Nothing has been sent yet'],
  ['subscriptions', 'No destination yet'],
  ['installations', 'No connection yet'],
  ['nowhere', 'There is nothing at this address'],
]
const looks = [
  ['light', { colorScheme: 'light' as const }],
  ['dark', { colorScheme: 'dark' as const }],
  ['on a phone', { colorScheme: 'light' as const, viewport: { width: 390, height: 844 } }],
] as const

describe.each(looks)('every view, %s', (_, look) => {
  it('shows what it is about, breaks no rule of accessibility and none of its own policy', async () => {
    const { page, complaints, close } = await browser.open(core, 'conversations', look)
    const found: string[] = []
    for (const [path, shows] of views) {
      await page.goto(`${core.url}/console/${path}`)
      await page.locator('main').getByText(shows).filter({ visible: true }).first().waitFor()
      found.push(...(await accessibilityFindings(page)).map((finding) => `${path}: ${finding}`))
      const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)
      if (wide) found.push(`${path}: scrolls sideways`)
    }
    expect(found).toEqual([])
    expect(complaints).toEqual([])
    await close()
  })
})

describe('an empty workspace', () => {
  it('says in every view what to do', async () => {
    const { page, complaints, close } = await browser.open(empty, 'conversations')
    const found: string[] = []
    for (const [path, shows] of empties) {
      await page.goto(`${empty.url}/console/${path}`)
      await page.getByText(shows).waitFor()
      found.push(...(await accessibilityFindings(page)).map((finding) => `${path}: ${finding}`))
    }
    expect(found).toEqual([])
    expect(complaints).toEqual([])
    await close()
  })
})
