import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { itLong, someOf } from '../support/is-long.ts'
import { useWidgetPages } from './widget-under-test.ts'

const { gateway, visit } = useWidgetPages()
const launcher = (page: Page, name: string | RegExp = /^Open chat/) => page.getByRole('button', { name })
const field = (page: Page) => page.getByRole('textbox', { name: 'Your message' })
const storedKeys = (page: Page) => page.evaluate('Object.keys(sessionStorage).concat(Object.keys(localStorage))')

const styleOfPanel = (page: Page, property: string) =>
  page.evaluate(
    `getComputedStyle(document.querySelector('[data-service-widget]').shadowRoot.querySelector('.panel')).${property}`,
  )

/** Evaluates an expression in the page, for example `widget`, a variable of the test page's script. */
const ask = (page: Page, expression: string) => page.evaluate(expression)

const keepsWidget = `
  window.received = []
  addEventListener('service-widget:start', ({ detail }) => { window.loader = detail; window.received.push('start') })
  addEventListener('service-widget:ready', ({ detail }) => { window.widget = detail.widget; window.received.push('ready') })
`

describe('the script tag', () => {
  itLong(
    'runs on a strict page without a policy violation, and creates no session before the chat is opened',
    async () => {
      const { page, complaints } = await visit({ context: { locale: 'en-GB' } })
      const asked: string[] = []
      page.on('request', (request) => asked.push(new URL(request.url()).pathname))
      await page.reload()
      await launcher(page).waitFor()
      expect(asked).toEqual(['/', '/page.js', '/widget.js', '/api/integrations/v1/widget/config/pk_friendly'])
      expect(await storedKeys(page)).toEqual([])
      expect(gateway().sessionCount('pk_friendly')).toBe(0)

      await launcher(page).click()
      await page.getByText('We are online').waitFor()
      expect(asked.filter((path) => /^\/widget\/v1\/\w+\/chat\.js$/.test(path))).toHaveLength(1)
      expect(gateway().sessionCount('pk_friendly')).toBe(1)
      await page.keyboard.type('Hello')
      await page.keyboard.press('Enter')
      await page.getByText(/· Sent$/).waitFor()
      gateway().conversation('pk_friendly').agentSays('See https://example.com')
      await page.getByRole('link', { name: /example\.com/ }).waitFor()
      expect(complaints).toEqual([])
    },
  )

  it('uses the language of the page, without a policy violation', async () => {
    const { page, complaints } = await visit({ lang: 'ar', dir: 'rtl' })
    await launcher(page, 'فتح المحادثة').click()
    const dialog = page.getByRole('dialog', { name: 'Nordlicht Support' })
    await dialog.waitFor()
    await page.getByText('نحن متصلون الآن').waitFor()
    expect(await styleOfPanel(page, 'direction')).toBe('rtl')
    expect(gateway().seen('POST /sessions')).toHaveLength(1)
    expect(complaints).toEqual([])
  })

  itLong('uses English if the installation or the package does not support the page’s language', async () => {
    const { page } = await visit({ lang: 'nn', context: { locale: 'nn-NO' } })
    await launcher(page).waitFor()
  })

  itLong(
    'shows a failure if the chat cannot be loaded, and loads the chat when the launcher is pressed again',
    async () => {
      const { page } = await visit()
      let refusals = 0
      await page.route(/\/chat\.js/, (route) => {
        refusals += 1
        return route.abort()
      })
      await launcher(page).click()
      await page.getByRole('alert').getByText('Chat did not load').waitFor()
      const before = refusals
      await launcher(page).click()
      await expect.poll(() => refusals).toBeGreaterThan(before)
      await page.getByRole('alert').getByText('Chat did not load').waitFor()
      await page.unroute(/\/chat\.js/)
      await launcher(page).click()
      await page.getByText('We are online').waitFor()
      expect(await page.getByText('Chat did not load').count()).toBe(0)
    },
  )

  it('resumes the chat on page load if the tab has a session, and keeps the number of unread messages', async () => {
    const { page, complaints } = await visit()
    await launcher(page).click()
    await page.getByText('We are online').waitFor()
    await page.keyboard.press('Escape')
    gateway().conversation('pk_friendly').agentSays('One')
    await launcher(page, 'Open chat, 1 unread message').waitFor()
    await page.reload()
    await launcher(page, 'Open chat, 1 unread message').waitFor()
    gateway().conversation('pk_friendly').agentSays('Two')
    await launcher(page, 'Open chat, 2 unread messages').click()
    await page.getByText('Two').waitFor()
    expect(gateway().sessionCount('pk_friendly')).toBe(1)
    // After a page load, an open chat opens again but does not take the focus. A closed chat stays closed.
    await page.reload()
    await page.getByRole('dialog').waitFor()
    expect(await page.evaluate('document.activeElement === document.body')).toBe(true)
    await page.getByRole('dialog').getByRole('button', { name: 'Close chat' }).click()
    await page.reload()
    await launcher(page, 'Open chat').waitFor()
    expect(await page.getByRole('dialog').count()).toBe(0)
    expect(complaints).toEqual([])
  })

  itLong(
    'reports at each page load that the session of the tab has ended; with data-storage="memory", stores nothing in the tab',
    async () => {
      const { page } = await visit({
        pageScript: `${keepsWidget}; addEventListener('service-widget:ready', ({ detail }) =>
        detail.widget.on('session.expired', () => received.push('session.expired')))`,
      })
      expect(await ask(page, 'received')).toEqual(['start'])
      for (const stored of [
        'damaged',
        JSON.stringify({ clientInstanceId: 'x', session: {}, times: { renewAtMs: 1 } }),
      ]) {
        await page.evaluate((record) => sessionStorage.setItem('service.widget.1.pk_friendly', record), stored)
        for (let load = 0; load < 2; load += 1) {
          await page.reload()
          await expect.poll(() => ask(page, 'received')).toEqual(['start', 'ready', 'session.expired'])
        }
      }
      expect(gateway().sessionCount('pk_friendly')).toBe(0)
      await launcher(page).click()
      await page.getByRole('button', { name: 'Start a new chat' }).click()
      await page.getByText('We are online').waitFor()
      expect(gateway().sessionCount('pk_friendly')).toBe(1)

      const { page: other } = await visit({ attributes: 'data-storage="memory"' })
      await launcher(other).click()
      await other.getByText('We are online').waitFor()
      expect(await storedKeys(other)).toEqual([])
    },
  )

  itLong('creates a widget that styles of the page cannot hide or shrink', async () => {
    const { page } = await visit({
      head: '<style>div { display: none !important; transform: scale(0.1); font-size: 3px } button { opacity: 0 }</style>',
    })
    const box = (await launcher(page).boundingBox())!
    expect(Math.round(box.width)).toBe(56)
    await launcher(page).click()
    await page.getByText('We are online').waitFor()
  })

  itLong('applies position, theme and launcher visibility from its attributes', async () => {
    const { page } = await visit({
      attributes: 'data-position="left" data-theme="dark" data-launcher="hidden"',
      body: '<button id="own" type="button">Help</button>',
      pageScript: `${keepsWidget}; document.addEventListener('click', ({ target }) => target.id === 'own' && window.loader.open())`,
    })
    await page.getByRole('button', { name: 'Help' }).click()
    const dialog = page.getByRole('dialog', { name: 'Nordlicht Support' })
    await dialog.waitFor()
    expect((await dialog.boundingBox())!.x).toBeLessThan(40)
    expect(await styleOfPanel(page, 'backgroundColor')).toBe('rgb(23, 25, 31)')
    expect(await launcher(page, 'Close chat').count()).toBe(1)
    await page.keyboard.press('Escape')
    expect(await page.evaluate('document.activeElement.id')).toBe('own')
  })

  itLong('accepts an address of the service that ends with a slash', async () => {
    const { page } = await visit({ attributes: `data-api-base-url="${gateway().url}/"` })
    await launcher(page).waitFor()
    expect(gateway().seen('GET /config/pk_friendly')).toHaveLength(1)
    await launcher(page).click()
    await page.getByText('We are online').waitFor()
  })

  const screens = [
    ['on a large screen', undefined],
    ['on a phone', { viewport: { width: 400, height: 700 } }],
  ] as const
  it.each(someOf(screens, 1))(
    'fills the element of the page in which the page embeds it, and stays open, %s',
    async (_, context) => {
      const { page, complaints } = await visit({
        context,
        attributes: 'data-launcher="hidden"',
        body: '<p>Ask us here:</p><div id="place"></div><p>Or call us.</p>',
        pageScriptKind: 'defer',
        pageScript: `
        const loader = document.querySelector('script[data-site-key]').serviceWidget
        const container = document.querySelector('#place')
        Object.assign(container.style, { width: '340px', height: '480px' })
        loader.configure({ embedded: true, container })
        loader.load().then((widget) => { window.widget = widget; return widget.mount() })`,
      })
      const panel = page.getByRole('region', { name: 'Nordlicht Support' })
      await field(page).fill('Hello')
      await field(page).press('Enter')
      await page.getByText(/· Sent$/).waitFor()
      expect(await panel.boundingBox()).toEqual(await page.locator('#place').boundingBox())
      await field(page).press('Escape')
      expect(await panel.isVisible()).toBe(true)
      expect(await page.getByRole('button', { name: /^(Open|Close) chat/ }).count()).toBe(0)
      await ask(page, 'widget.unmount()')
      expect(await page.locator('[data-service-widget]').count()).toBe(0)
      expect(complaints).toEqual([])
    },
  )

  it('logs an error if the site key is missing', async () => {
    const { complaints } = await visit({ attributes: '', siteKey: '' as never })
    await expect.poll(() => complaints.join()).toContain('data-site-key')
  })
})

describe('a page that controls the widget', () => {
  itLong('gets the loader and the widget from events and from a property of the script element', async () => {
    const { page, complaints } = await visit({ pageScript: keepsWidget })
    await launcher(page).waitFor()
    expect(await ask(page, 'received')).toEqual(['start'])
    expect(await ask(page, `document.querySelector('script[data-site-key]').serviceWidget === loader`)).toBe(true)
    await ask(page, `loader.configure({ localeTexts: { en: { composerPlaceholder: 'Ask away' } } }); loader.load()`)
    await expect.poll(() => ask(page, 'received')).toEqual(['start', 'ready'])
    expect(gateway().sessionCount('pk_friendly')).toBe(0)
    expect(await storedKeys(page)).toEqual([])

    await ask(page, 'widget.mount()')
    expect(gateway().sessionCount('pk_friendly')).toBe(1)
    await ask(page, `widget.prefill('About lamp 7'), widget.open()`)
    await page.getByPlaceholder('Ask away').waitFor()
    expect(await field(page).inputValue()).toBe('About lamp 7')
    expect(await ask(page, 'widget.isOpen()')).toBe(true)
    expect(complaints).toEqual([])
  })

  itLong.each(someOf(['module', 'defer'] as const, 1))(
    'configures the chat from a %s script before the session of the tab is resumed',
    async (pageScriptKind) => {
      const { page } = await visit({
        pageScriptKind,
        pageScript: `
          window.asked = 0
          document.querySelector('script[data-site-key]').serviceWidget.configure({
            identityProvider: async () => { window.asked += 1 },
          })`,
      })
      await launcher(page).click()
      await page.getByText('We are online').waitFor()
      for (let load = 0; load < 3; load += 1) {
        await page.reload()
        await page.getByText('We are online').waitFor()
        expect(await ask(page, 'asked')).toBe(1)
      }
    },
  )

  itLong('identifies and logs out a visitor as in docs/recipes.md', async () => {
    const recipes = await readFile(join(import.meta.dirname, '../../docs/recipes.md'), 'utf8')
    const [, pageScript] = /```js\n([\s\S]*?)```/.exec(recipes)!
    const { page } = await visit({
      pageScriptKind: 'defer',
      pageScript,
      body: '<form id="logout" action="/goodbye" method="get"><button>Log out</button></form>',
    })
    let asked = 0
    await page.route('**/chat-identity', (route) => {
      asked += 1
      return route.fulfill({ status: 204 })
    })
    await launcher(page).click()
    await page.getByText('We are online').waitFor()
    expect(asked).toBe(1)
    await page.getByRole('button', { name: 'Log out' }).click()
    await expect.poll(() => gateway().seen('POST /sessions/close').at(-1)?.body).toEqual({ scope: 'continuity' })
  })

  const removals = [
    ['before the page has loaded', "document.querySelector('script[data-site-key]').serviceWidget.remove()"],
    [
      'while the chat loads',
      "const { serviceWidget } = document.querySelector('script[data-site-key]'); serviceWidget.open(); serviceWidget.remove()",
    ],
  ] as const
  itLong.each(someOf(removals, 1))('stays away if the page removes the loader %s', async (_when, remove) => {
    const { page } = await visit({
      pageScriptKind: 'defer',
      pageScript: `if (location.hash) { ${remove} }`,
    })
    await launcher(page).click()
    await page.getByText('We are online').waitFor()
    const sessions = gateway().sessionCount('pk_friendly')
    const loaded = page.waitForResponse(/\/chat\.js/).catch(() => undefined)
    await page.goto(`${page.url()}#removed`)
    await page.reload()
    if (_when === 'while the chat loads') await loaded
    await page.waitForLoadState('networkidle')
    expect(await page.locator('[data-service-widget] *').count()).toBe(0)
    expect(gateway().sessionCount('pk_friendly')).toBe(sessions)
  })

  itLong('takes no element of the page for its script', async () => {
    const { page } = await visit({
      head: '<img name="currentScript" src="https://evil.example/x" data-site-key="pk_evil" alt="">',
    })
    await launcher(page).waitFor()
    expect(gateway().seen('GET /config/pk_friendly')).toHaveLength(1)
  })

  itLong('creates the chat again if the page configures it after it was loaded', async () => {
    const { page, complaints } = await visit({ pageScript: keepsWidget })
    await launcher(page).click()
    await page.getByText('We are online').waitFor()
    await ask(page, 'window.first = widget, undefined')
    await ask(
      page,
      `window.asked = 0, loader.configure({
        localeTexts: { en: { composerPlaceholder: 'Ask away' } },
        identityProvider: async () => { window.asked += 1 },
      })`,
    )
    await page.getByPlaceholder('Ask away').waitFor()
    await page.getByText('We are online').waitFor()
    expect(await ask(page, 'asked')).toBe(1)
    expect(await ask(page, 'received')).toEqual(['start', 'ready', 'ready'])
    expect(await ask(page, 'first === widget')).toBe(false)
    expect(await page.getByRole('dialog').count()).toBe(1)
    expect(gateway().sessionCount('pk_friendly')).toBe(1)
    expect(complaints).toEqual([])
  })

  itLong('can change language, theme and launcher, and the visitor’s draft is kept', async () => {
    const { page, complaints } = await visit({ pageScript: keepsWidget })
    await launcher(page).click()
    await field(page).fill('Half a sen')
    await ask(page, `widget.setLocale('de-AT')`)
    const german = page.getByRole('textbox', { name: 'Ihre Nachricht' })
    await german.waitFor()
    expect(await german.inputValue()).toBe('Half a sen')
    expect(await german.evaluate((element) => element.matches(':focus'))).toBe(true)
    await ask(page, `widget.setTheme('dark')`)
    expect(await styleOfPanel(page, 'backgroundColor')).toBe('rgb(23, 25, 31)')
    await ask(page, 'widget.hideLauncher()')
    expect(await page.getByRole('button', { name: 'Chat schließen' }).count()).toBe(1)
    await ask(page, 'widget.showLauncher()')
    expect(await page.getByRole('button', { name: 'Chat schließen' }).count()).toBe(2)
    expect(complaints).toEqual([])
  })

  itLong('can get the number of unread messages, and unmount and remount the widget', async () => {
    const { page, complaints } = await visit({ pageScript: keepsWidget })
    await launcher(page).click()
    await page.getByText('We are online').waitFor()
    await ask(
      page,
      `window.counts = [], widget.on('unread.changed', ({ count }) => counts.push(count)), widget.setOpen(false)`,
    )
    gateway().conversation('pk_friendly').agentSays('Hello?')
    await expect.poll(() => ask(page, 'widget.unreadCount()')).toBe(1)
    await page.getByRole('status').getByText('Anna Keller: Hello?').waitFor()
    await ask(page, 'widget.open()')
    await expect.poll(() => ask(page, 'counts')).toEqual([1, 0])
    await ask(page, 'widget.unmount()')
    expect(await page.locator('[data-service-widget]').count()).toBe(0)
    await ask(page, 'widget.open()')
    await page.getByText('Hello?').waitFor()
    expect(await page.locator('[data-service-widget]').count()).toBe(1)
    expect(await page.getByRole('button', { name: 'Close chat' }).count()).toBe(2)
    expect(gateway().sessionCount('pk_friendly')).toBe(1)
    expect(complaints).toEqual([])
  })
})
