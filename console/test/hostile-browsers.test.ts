import { expect } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { consoleBrowser } from './test-console.ts'

const browser = consoleBrowser()

/** Opens the inbox after the script has changed the browser. */
async function openChanged<Given>(change: (given: Given) => void, given?: Given) {
  const core = await browser.newDemoCore()
  const page = await browser.open(core, 'nowhere')
  await page.addInitScript(change as never, given)
  await page.goto(`${core.url}/console/conversations`)
  await page.getByText('Live', { exact: true }).waitFor()
  return { core, page }
}

const bell = { name: 'Notifications and sound' }

itLong('the console works while the browser blocks every storage', async () => {
  const { core, page } = await openChanged(() => {
    const blocked = {
      get(): never {
        throw new DOMException('blocked', 'SecurityError')
      },
    }
    for (const name of ['localStorage', 'sessionStorage', 'indexedDB']) Object.defineProperty(window, name, blocked)
    const refuse = async () => blocked.get()
    Object.assign(LockManager.prototype, { request: refuse, query: refuse })
  })
  await page.locator('a[href$="/cnv_x7f3"]').click()
  const reply = page.getByRole('textbox', { name: /^Reply/ })
  await reply.fill('Written without storage')
  await reply.press('Control+Enter')
  await page.locator('.log').getByText('Written without storage').waitFor()
  core.conversations.visitorSays('cnv_x7f3', 'I see it')
  await page.getByText('I see it').first().waitFor()
})

itLong.each(['default', 'granted'])(
  'the bell says that the browser of a phone cannot show notifications, with the permission `%s`',
  async (given) => {
    const { page } = await openChanged((permission) => {
      class AndroidNotification {
        static permission = permission
        static requestPermission = async () => 'granted'
        constructor() {
          throw new TypeError('Illegal constructor')
        }
      }
      Object.assign(window, { Notification: AndroidNotification })
    }, given)
    await page.getByRole('button', bell).click()
    await page.getByRole('dialog', { name: 'This browser cannot show notifications' }).waitFor()
    await page.keyboard.press('Escape')
    expect(await page.getByRole('button', bell).getAttribute('aria-pressed')).toBe('false')
  },
)

itLong('a count is current although the browser has translated the page', async () => {
  const { page } = await openChanged(() => {})
  const count = page.locator('.areas .count')
  await count.waitFor()
  const number = async () => Number.parseInt((await count.textContent())!, 10)
  const before = await number()
  await page.evaluate(() => {
    const texts = document.createTreeWalker(document.querySelector('.sidebar')!, NodeFilter.SHOW_TEXT)
    const found: Node[] = []
    while (texts.nextNode()) found.push(texts.currentNode)
    for (const text of found) {
      const font = document.createElement('font')
      font.textContent = text.textContent
      text.parentNode!.replaceChild(font, text)
    }
  })
  await page.locator('a[href$="/cnv_x7f3"]').click()
  const reply = page.getByRole('textbox', { name: /^Reply/ })
  await reply.fill('An answer')
  await reply.press('Control+Enter')
  await until('the count', async () => (await number()) === before - 1)
})
