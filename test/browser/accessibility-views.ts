import { AxeBuilder } from '@axe-core/playwright'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { accessibilityTags, zoomedSizes } from '../support/page-checks.ts'
import {
  choosePicture,
  inWidget,
  open,
  openForm,
  say,
  type useWidget,
  withOffline,
  withPreChat,
  withRequests,
} from './widget-under-test.ts'

/** Returns the accessibility violations that axe finds on the host page with the widget. */
export async function findings(page: Page, ignoredRules: string[] = []): Promise<string[]> {
  const axe = new AxeBuilder({ page }).withTags(accessibilityTags).disableRules(ignoredRules)
  const { violations, passes } = await axe.analyze()
  expect(passes.length).toBeGreaterThan(5)
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id} ${target} ${failureSummary}`),
  )
}

const colorOfSurface = `(() => {
  const host = document.querySelector('[data-service-widget]').shadowRoot
  const surface = host.querySelector('.panel:not([hidden])') ?? host.querySelector('.failed') ?? host.querySelector('.launcher')
  return getComputedStyle(surface).backgroundColor
})()`

/** What stands outside of the panel, or makes the page scroll sideways. */
const misplaced = `(() => {
  const host = document.querySelector('[data-service-widget]').shadowRoot
  const panel = (host.querySelector('.panel:not([hidden])') ?? document.documentElement).getBoundingClientRect()
  const isOutside = ({ left, right, top, bottom }) =>
    left < panel.left - 1 || right > panel.right + 1 || top < panel.top - 1 || bottom > panel.bottom + 1
  return [...host.querySelectorAll('.field, .close')]
    .filter((each) => each.checkVisibility() && isOutside(each.getBoundingClientRect()))
    .map((each) => each.className)
    .concat(document.documentElement.scrollWidth > innerWidth ? ['the page scrolls sideways'] : [])
})()`

/**
 * Expects no accessibility violation in the light and the dark colour scheme. Unless `differs` is
 * false, also expects different background colours in the two schemes.
 */
export async function expectFlawless(page: Page, differs = true) {
  let light: unknown
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    const color = () => page.evaluate(colorOfSurface)
    if (differs && light) await expect.poll(color).not.toBe(light)
    light ??= await color()
    expect(await findings(page), colorScheme).toEqual([])
  }
}

/** Expects no accessibility violation right to left in forced colours at 200 % and 400 % zoom, and all in its place. */
export async function expectFlawlessRightToLeft(page: Page) {
  await page.emulateMedia({ forcedColors: 'active' })
  await inWidget(page, '[dir]').evaluateAll((frames) => frames[0]?.setAttribute('dir', 'rtl'))
  for (const zoomed of [zoomedSizes.twice, zoomedSizes.fourTimes]) {
    await page.setViewportSize(zoomed)
    // The user chooses the colours.
    expect(await findings(page, ['color-contrast']), 'right to left').toEqual([])
    expect(await page.evaluate(misplaced), `right to left at ${zoomed.width} px`).toEqual([])
  }
}

export interface View {
  siteKey?: 'pk_refused' | 'pk_rate_limited_long'
  config?: Record<string, unknown>
  /** Set if the view's background is the installation's colour in both colour schemes. The launcher is an example. */
  isOneColor?: boolean
  show(page: Page): Promise<unknown>
}

const withOpeningReplies = {
  title: 'Nordlicht',
  greeting: 'Hi there!',
  accentColor: '#1f5f4f',
  position: 'right',
  openingReplies: { texts: ['Where is my order?', 'I need a part for a lamp that is no longer made'] },
}

/** All views of the widget. */
export const viewsOf = ({
  gateway,
  ask,
  askForScreenshot,
  showLongConversation,
  showEndedSession,
}: ReturnType<typeof useWidget>): Record<string, View> => ({
  launcher: { isOneColor: true, show: async () => {} },
  'empty panel': { show: open },
  conversation: { show: showLongConversation },
  'opening replies and consent': {
    config: { consent: { required: true, policyVersion: '1' }, appearance: withOpeningReplies },
    async show(page) {
      await open(page)
      await page.getByRole('button', { name: 'Where is my order?' }).waitFor()
      await inWidget(page, '.consent .primary').waitFor()
    },
  },
  'declined consent': {
    config: { consent: { required: true, policyVersion: '1' } },
    async show(page) {
      await open(page)
      await inWidget(page, '.consent .secondary').first().click()
      await page.getByRole('button', { name: 'Decide again' }).waitFor()
    },
  },
  'growing answer of a bot after quick replies': {
    async show(page) {
      await open(page)
      await say(page, 'Do you ship to Graz?')
      await page.getByText(/· Sent$/).waitFor()
      const talk = gateway().conversation('pk_friendly')
      const author = { kind: 'bot', displayName: 'Robo' } as const
      talk.agentSays('We ship to:', 'Robo', { author, quickReplies: ['Austria', 'Somewhere else'] })
      await page.getByRole('button', { name: 'Somewhere else' }).waitFor()
      talk.agentSays('One moment', 'Robo', { author, growing: true })
      await page.getByRole('button', { name: 'Stop' }).waitFor()
    },
  },
  'agent changes, and a typing agent': {
    async show(page) {
      await open(page)
      await say(page, 'Do you ship to Graz?')
      await page.getByText(/· Sent$/).waitFor()
      const talk = gateway().conversation('pk_friendly')
      talk.emit('agent.assigned', { agent: { displayName: 'Anna Keller' } })
      talk.agentSays('We do.')
      talk.emit('conversation.closed')
      talk.emit('agent.unassigned', { agent: { displayName: 'Anna Keller' } })
      await page.getByText('Anna Keller has left this chat').waitFor()
      await page.getByText('This chat was marked as done.').waitFor()
      talk.emit('typing.started', { author: { kind: 'agent', displayName: 'Anna Keller' } })
      await inWidget(page, '.typing').waitFor()
    },
  },
  'rating and transcript': {
    config: { capabilities: { rating: true } },
    async show(page) {
      await open(page)
      await say(page, 'Do you ship to Graz?')
      const talk = gateway().conversation('pk_friendly')
      talk.agentSays('We do.')
      talk.emit('conversation.closed')
      talk.emit('rating.requested')
      await page.getByRole('button', { name: 'Good', exact: true }).click()
      await page.getByRole('button', { name: 'Send rating' }).waitFor()
    },
  },
  'failed message': {
    siteKey: 'pk_rate_limited_long',
    async show(page) {
      await open(page)
      await say(page, 'Please')
      await inWidget(page, '.retry').waitFor()
    },
  },
  'message that cannot be sent again': {
    siteKey: 'pk_refused',
    async show(page) {
      await open(page)
      await say(page, 'Please')
      await page.getByText('Not sent').waitFor()
    },
  },
  'ended session': { show: showEndedSession },
  'chat without connection': {
    async show(page) {
      await open(page)
      await page.context().setOffline(true)
      await say(page, 'Are you there?')
      await inWidget(page, '.row[data-state="pending"], .row[data-state="retrying"]').waitFor()
    },
  },
  'chat that did not load': {
    isOneColor: true,
    async show(page) {
      await page.route(/\/chat\.js/, (route) => route.abort())
      await inWidget(page, '.launcher').click()
      await inWidget(page, '.failed').waitFor()
    },
  },
  'form before a chat': { config: withPreChat, show: openForm },
  'form with invalid fields': {
    config: withPreChat,
    async show(page) {
      await openForm(page)
      await page.getByLabel('Email address').fill('ada at example')
      await page.keyboard.press('Enter')
      await page.getByText('Please enter an email address').waitFor()
    },
  },
  'form that was not sent': {
    config: withPreChat,
    async show(page) {
      await openForm(page)
      gateway().features.failNext('/forms/', { status: 403, code: 'Forbidden', retryable: false })
      await page.getByLabel('Email address').fill('ada@example.com')
      await page.keyboard.press('Enter')
      await page.getByText('Your details were not sent. Please try again.').waitFor()
    },
  },
  'form that is being sent': {
    config: withPreChat,
    async show(page) {
      await openForm(page)
      gateway().features.hold('/forms/')
      await page.getByLabel('Email address').fill('ada@example.com')
      await page.keyboard.press('Enter')
      await inWidget(page, '.form-view [aria-disabled="true"]').waitFor()
    },
  },
  'offline form': { config: withOffline, show: openForm },
  'offer of the offline form': {
    config: withOffline,
    async show(page) {
      await openForm(page)
      await page.getByRole('button', { name: 'Write a message instead' }).click()
      await page.getByRole('button', { name: 'Leave your details instead' }).waitFor()
    },
  },
  'request to go to another page': {
    config: withRequests,
    async show(page) {
      await open(page)
      ask('navigation', { url: 'https://elsewhere.example/lamps/dune', label: 'The lamp Dune' })
      await page.getByText('The lamp Dune', { exact: true }).waitFor()
    },
  },
  'request for a screenshot': { config: withRequests, show: askForScreenshot },
  'picture before it is sent': {
    config: withRequests,
    async show(page) {
      await askForScreenshot(page)
      await choosePicture(page, () => page.getByRole('button', { name: 'Choose a picture' }).click())
    },
  },
  'picture under way': {
    config: withRequests,
    async show(page) {
      await askForScreenshot(page)
      await choosePicture(page, () => page.getByRole('button', { name: 'Choose a picture' }).click())
      gateway().features.hold('upload')
      await page.getByRole('button', { name: 'Send picture' }).click()
      await page.getByRole('button', { name: 'Stop' }).waitFor()
    },
  },
  'picture that did not arrive': {
    config: withRequests,
    async show(page) {
      await askForScreenshot(page)
      await choosePicture(page, () => page.getByRole('button', { name: 'Choose a picture' }).click())
      gateway().features.failNext('acknowledgements', { status: 403, code: 'Forbidden', retryable: false })
      await page.getByRole('button', { name: 'Send picture' }).click()
      await inWidget(page, '.request .field-problem').waitFor()
    },
  },
})

/** Opens a view and expects no accessibility violation in both colour schemes. Returns its page. */
export async function expectFlawlessView({ serve, visit }: ReturnType<typeof useWidget>, view: View) {
  if (view.config) await serve(view.config)
  const page = await visit({ siteKey: view.siteKey })
  await inWidget(page, '.launcher').waitFor()
  await view.show(page)
  await expectFlawless(page, !view.isOneColor)
  return page
}
