import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { isLong, itLong, someOf } from '../support/is-long.ts'
import { inWidget, open, say, useWidget, withPreChat } from './widget-under-test.ts'

const { gateway, serve, visit } = useWidget()

const desktop = { width: 1200, height: 800 }
const phone = { width: 390, height: 844 }
const screens = { desktop, phone }

const accentOf = (page: Page) => inWidget(page, '.frame').evaluate((frame) => frame.style.getPropertyValue('--accent'))

/** Returns by how many pixels an element of the widget extends beyond the viewport. */
async function hiddenPx(page: Page, selector: string): Promise<number> {
  const { x, y, width, height } = (await inWidget(page, selector).boundingBox())!
  const { width: right, height: bottom } = page.viewportSize()!
  return Math.round(Math.max(0, -x, -y, x + width - right, y + height - bottom))
}

/** Dispatches the event that a page gets when the visitor returns to its tab. */
const returnToTab = (page: Page) => page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`)

// The regular run checks one screen.
describe.each(Object.entries(screens).slice(0, isLong ? undefined : 1))(
  'on a %s, if the configuration request fails',
  (_name, viewport) => {
    itLong(
      'the panel opens on the default side, and gets the configured appearance when a later request succeeds',
      async () => {
        await serve(withPreChat, { position: 'left', accentColor: '#aa1122' })
        const page = await visit({ pageScript: 'window.onerror = null', context: { viewport } })
        await page.route('**/config/**', (route) => route.abort())
        await page.reload()
        await inWidget(page, '.launcher').waitFor()
        expect(await hiddenPx(page, '.launcher')).toBe(0)
        const standsRight = await inWidget(page, '.launcher').boundingBox()
        expect(standsRight!.x).toBeGreaterThan(viewport.width / 2)
        await open(page)
        expect(await hiddenPx(page, '.panel')).toBe(0)
        expect(await accentOf(page)).toBe('#2554d6')

        await page.unroute('**/config/**')
        await page.evaluate(`dispatchEvent(new Event('offline')), dispatchEvent(new Event('online'))`)
        await expect.poll(() => accentOf(page), { timeout: 15_000 }).toBe('#aa1122')
        await inWidget(page, '.frame[data-position="left"]').waitFor({ state: 'attached' })
        expect(await hiddenPx(page, '.panel')).toBe(0)
        await inWidget(page, '.form-view').waitFor()
      },
    )
  },
)

describe('a failure of the service', () => {
  const ownLines = (complaints: string[]) => complaints.filter((line) => line.startsWith('Chat:'))

  async function visitRefused(options: Parameters<typeof visit>[0] = {}) {
    gateway().refuseOrigin(true)
    const complaints: string[] = []
    const page = await visit(options)
    page.on('console', (message) => complaints.push(message.text()))
    // A line of the first page may still arrive.
    page.on('framenavigated', () => complaints.splice(0))
    await page.reload()
    return { page, complaints }
  }

  itLong(
    'if the origin is rejected, no chat is shown, and one console line says which origin to allow and where',
    async () => {
      const { page, complaints } = await visitRefused()
      await expect.poll(() => ownLines(complaints)).toHaveLength(1)
      const { origin } = new URL(page.url())
      expect(ownLines(complaints)[0]).toBe(
        `Chat: OriginNotAllowed. Allow ${origin} for pk_friendly (console: Websites)`,
      )
      for (let times = 0; times < 3; times += 1) {
        await Promise.all([page.waitForEvent('requestfailed'), returnToTab(page)])
      }
      expect(await page.locator('[data-service-widget]').count()).toBe(0)
      expect(ownLines(complaints)).toHaveLength(1)

      gateway().refuseOrigin(false)
      await returnToTab(page)
      await open(page)
    },
  )

  itLong('if the visitor returns to the tab before a refusal arrives, the page asks again', async () => {
    const { page } = await visitRefused()
    let isReloaded = false
    let asked = 0
    page.on('framenavigated', () => {
      isReloaded = true
    })
    await page.route('**/config/**', async (route) => {
      // The page before the reload may ask too.
      if (!isReloaded) return route.continue()
      asked += 1
      if (asked === 1) await returnToTab(page)
      else gateway().refuseOrigin(false)
      await route.continue()
    })
    await page.reload()
    await open(page)
  })

  itLong('if the installation is unknown, no chat is shown', async () => {
    const { page, complaints } = await visitRefused({ siteKey: 'pk_unknown' })
    gateway().refuseOrigin(false)
    await page.reload()
    await expect
      .poll(() => ownLines(complaints).join())
      .toBe('Chat: InstallationNotFound. No website has the site key pk_unknown (console: Websites)')
    expect(await page.locator('[data-service-widget]').count()).toBe(0)
  })

  itLong.each(
    someOf(
      [
        ['IdentityAssertionInvalid', 'Check key, audience and claims of the assertion for pk_friendly'],
        ['IdentityAssertionExpired', "Sign the assertion when it is asked for, and check your server's clock"],
        ['IdentityAssertionReplayed', 'Sign a new assertion, with a new nonce, each time'],
      ],
      1,
    ),
  )('if the service refuses an identity with %s, one console line says what to do', async (code, remedy) => {
    const refusal = { status: 401, code, retryable: false }
    await fetch(`${gateway().url}/control`, {
      method: 'POST',
      body: JSON.stringify({ call: 'set', siteKey: 'pk_friendly', value: { refuseIdentities: [refusal, refusal] } }),
    })
    const pageScript = `document.querySelector('script[data-site-key]').serviceWidget.configure({ identityProvider: async () => 'e30.e30.e30' })`
    const complaints: string[] = []
    const page = await visit({ pageScript, pageScriptKind: 'defer' })
    page.on('console', (message) => complaints.push(message.text()))
    await page.locator('[data-service-widget] .launcher').click()
    await expect.poll(() => ownLines(complaints)).toEqual([`Chat: ${code}. ${remedy}`])
  })

  itLong(
    'if the origin is rejected and the page opens the chat, the panel says that chat is not available',
    async () => {
      const { page, complaints } = await visitRefused({
        pageScript: `addEventListener('service-widget:start', ({ detail }) => { window.loader = detail })`,
      })
      await expect.poll(() => ownLines(complaints)).toHaveLength(1)
      await page.evaluate('loader.open()')
      await page.getByText('Chat is not available at the moment.').waitFor()
      expect(await inWidget(page, '.field').isVisible()).toBe(false)
      expect(ownLines(complaints)).toHaveLength(1)
      await page.keyboard.press('Escape')
      expect(await inWidget(page, '.launcher').isVisible()).toBe(false)

      let asked = 0
      page.on('request', (request) => {
        if (request.url().includes('/config/')) asked += 1
      })
      // Leaving the page is no reason to ask again.
      await page.evaluate(`dispatchEvent(new Event('pagehide')); new Promise((resolve) => setTimeout(resolve))`)
      expect(asked).toBe(0)

      gateway().refuseOrigin(false)
      await returnToTab(page)
      await open(page)
      expect(await inWidget(page, '.field').isVisible()).toBe(true)
    },
  )

  it('if the service is unreachable, the launcher is shown and nothing is logged to the console', async () => {
    const complaints: string[] = []
    const page = await visit()
    page.on('console', (message) => complaints.push(message.text()))
    await page.route('**/api/**', (route) => route.abort())
    await page.route('**/widget.js?*', (route) => route.abort())
    await page.reload()
    await inWidget(page, '.launcher').click()
    await inWidget(page, '.header[data-state="connecting"]').waitFor()
    expect(ownLines(complaints)).toEqual([])
    await page.unroute('**/api/**')
    await page.evaluate(`dispatchEvent(new Event('online'))`)
    await inWidget(page, '.header[data-state="online"]').waitFor()
  })
})

describe('C7.1 after the end of a session', () => {
  const ends = {
    'connection.disabled': { status: 403, code: 'ConnectionDisabled' },
    'visitor.banned': { status: 403, code: 'VisitorBanned' },
  }
  const endsAtEachLoad = Object.keys(ends) as (keyof typeof ends)[]

  it.each(someOf(endsAtEachLoad, 1))(
    '%s: each reload says that the previous chat has ended, and offers a new one',
    async (event) => {
      const page = await visit()
      await open(page)
      await say(page, 'Do you ship to Graz?')
      await inWidget(page, '[data-state="queued"]').waitFor()
      gateway().endSessions('pk_friendly', event, ends[event])
      await inWidget(page, '.notice').waitFor()

      for (const _reload of ['first', 'second']) {
        await page.reload()
        await page.getByText('Your previous chat has ended.').waitFor()
        expect(await inWidget(page, '.field').isVisible()).toBe(false)
        expect(await page.getByText('Do you ship to Graz?').count()).toBe(0)
      }
      expect(gateway().sessionCount('pk_friendly')).toBe(1)
      await page.getByRole('button', { name: 'Start a new chat' }).click()
      await say(page, 'And to Linz?')
      await inWidget(page, '[data-state="queued"]').waitFor()
      expect(gateway().sessionCount('pk_friendly')).toBe(2)

      await page.reload()
      await page.getByText('And to Linz?').waitFor()
      expect(await page.getByText('Your previous chat has ended.').count()).toBe(0)
    },
  )
})
