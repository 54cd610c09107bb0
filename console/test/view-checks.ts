import type { Page } from 'playwright-core'
import eventList from '../../contract/event-kinds.json' with { type: 'json' }
import { pageSizes, zoomedSizes } from '../../test/support/page-checks.ts'
import type { FakeCore } from './fake-core.ts'
import { type consoleBrowser, violationsIn } from './test-console.ts'

export const views: [path: string, shows: string | RegExp][] = [
  ['conversations', 'Maria Huber'],
  ['conversations/cnv_maria', 'And if it does not fit?'],
  ['conversations/cnv_q1z6', 'كم تكلفة الشحن إلى دبي؟'],
  ['conversations/cnv_maria/details', 'customer-4711'],
  ['leads', 'Li Wei'],
  ['leads/lead_maria', 'maria@example.org'],
  ['deliveries', /^Given up/],
  ['deliveries/dlv_1', /connection refused/],
  ['subscriptions', /^Every lead · Name, E-mail/],
  ['subscriptions/new', 'Fields to send'],
  ['subscriptions/sub_old', /rejected the signature/],
  ['suppressions', 'No reason given'],
  ['suppressions/import', 'Choose file'],
  ['workspace/changes', 'Result unknown'],
  ['installations', 'Website'],
  ['installations/pk_shop', 'Features'],
  ['installations/pk_shop/look', 'Translations'],
  ['installations/pk_shop/hours', 'Opening hours'],
  ['installations/pk_shop/forms', 'Fields'],
  ['installations/pk_shop/privacy', 'Require consent'],
  ['installations/pk_shop/keys', 'key_demo'],
  ['replies', 'We ship within two days.'],
  ['people', 'Find a person'],
  ['report', 'Mean rating'],
  ['workspace', 'Sessions without a message'],
]
export const emptyViews: [path: string, shows: string | RegExp][] = [
  ['conversations', 'Three steps to your first conversation'],
  ['leads', 'No leads yet'],
  ['leads/lead_nowhere', 'This does not exist, or belongs to another workspace.'],
  ['deliveries', 'No deliveries yet'],
  ['subscriptions', 'No destinations yet'],
  ['suppressions', 'Nobody is on the list'],
  ['workspace/changes', 'No changes yet'],
  ['report', 'No visitor began'],
  ['installations', 'No websites yet'],
  ['nowhere', 'Page not found'],
]
const { desktop, laptop, phone } = pageSizes
/** Rules whose result depends on the size of the page. */
const layoutRules = ['target-size', 'scrollable-region-focusable', 'css-orientation-lock']
/** Accessibility rules whose result depends on the colour scheme. */
const colourRules = ['color-contrast', 'link-in-text-block']
export const looks = [
  { name: 'light', colorScheme: 'light', viewport: desktop, rules: undefined },
  { name: 'dark', colorScheme: 'dark', viewport: desktop, rules: colourRules },
  { name: 'dark on a phone', colorScheme: 'dark', viewport: phone, rules: undefined },
  { name: 'light on a phone', colorScheme: 'light', viewport: phone, rules: colourRules },
  { name: 'light on a laptop', colorScheme: 'light', viewport: laptop, rules: layoutRules },
  { name: 'at 200 % on a laptop', colorScheme: 'light', viewport: zoomedSizes.twice, rules: layoutRules },
  { name: 'at 400 % on a laptop', colorScheme: 'light', viewport: zoomedSizes.fourTimes, rules: layoutRules },
  { name: 'in forced colours', colorScheme: 'light', viewport: desktop, rules: colourRules },
] as const

/**
 * Opens each view once and checks it with each of the given looks (colour scheme and screen size).
 * Returns the violations that it finds.
 */
export async function checkViews(
  browser: ReturnType<typeof consoleBrowser>,
  core: FakeCore,
  paths: typeof views,
  chosen: readonly (typeof looks)[number][],
) {
  const page = await browser.open(core, 'conversations')
  const found: string[] = []
  for (const [path, shows] of paths) {
    await page.setViewportSize(desktop)
    await page.goto(`${core.url}/console/${path}`)
    await page.locator('main').getByText(shows).filter({ visible: true }).first().waitFor()
    found.push(...(await namesInView(page)).map((name) => `${path}: shows ${name}`))
    found.push(...(await repeatedActions(page)).map((name) => `${path}: repeats ${name}`))
    found.push(...(await checkLooks(page, path, chosen)))
  }
  await page.context().close()
  return found
}

/** Returns the names of event types that the page shows. A closed *More* may have them. */
async function namesInView(page: Page) {
  const text = await page.locator('main').innerText()
  return Object.keys(eventList).filter((type) => text.includes(type))
}

/** Returns the controls of a placeholder that the head of the page has too. */
async function repeatedActions(page: Page) {
  const namesIn = (place: string) => page.locator(`${place} :is(a, button)`).allTextContents()
  const inHead = await namesIn('.page-head')
  return (await namesIn('.empty')).filter((name) => inHead.includes(name))
}

/** Returns the violations of the page that is open, in each of the given looks. */
export async function checkLooks(page: Page, path: string, chosen: readonly (typeof looks)[number][]) {
  const found: string[] = []
  for (const { name, colorScheme, viewport, rules } of chosen) {
    await page.emulateMedia({ colorScheme, forcedColors: name === 'in forced colours' ? 'active' : 'none' })
    await page.setViewportSize(viewport)
    const findings = await violationsIn(page, rules && [...rules])
    found.push(...findings.map((finding) => `${path}, ${name}: ${finding}`))
    const wide = await page.evaluate('document.documentElement.scrollWidth > innerWidth')
    if (wide) found.push(`${path}, ${name}: scrolls sideways`)
    const beyond = await page.evaluate<number>('document.documentElement.scrollHeight - innerHeight')
    if (beyond > 0) found.push(`${path}, ${name}: scrolls ${beyond} px into nothing`)
    for (const log of await page.locator('.log:visible').all()) {
      const { height = 0 } = (await log.boundingBox()) ?? {}
      if (height < 80) found.push(`${path}, ${name}: ${Math.round(height)} px for the messages`)
    }
    if (viewport === phone) found.push(...(await smallTargets(page)).map((each) => `${path}, ${name}: ${each}`))
  }
  return found
}

/**
 * Returns controls that are smaller than 44 px in one direction, together with their labels. Links
 * within a text are exempt.
 */
function smallTargets(page: Page): Promise<string[]> {
  return page.evaluate(`(() => {
    const controls = document.querySelectorAll('button, select, textarea, input, summary, a[href]')
    return [...controls].flatMap((control) => {
      const labels = 'labels' in control ? [...control.labels] : []
      const boxes = [control, ...labels].map((each) => each.getBoundingClientRect())
      const width = Math.round(Math.max(...boxes.map((box) => box.width)))
      const height = Math.round(Math.max(...boxes.map((box) => box.height)))
      const isInText = control.matches('a') && getComputedStyle(control).display === 'inline'
      const isHidden = !control.checkVisibility({ visibilityProperty: true }) || boxes[0].width < 2
      if (isInText || isHidden || (width >= 44 && height >= 44)) return []
      const name = control.getAttribute('aria-label') ?? control.textContent?.trim().slice(0, 30)
      return [[control.tagName, control.className, control.getAttribute('type'), '"' + name + '"', width + '×' + height].join(' ')]
    })
  })()`)
}
