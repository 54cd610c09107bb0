import type { Page } from 'playwright-core'
import { describe, it } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { setVisible } from '../../test/support/tab-visibility.ts'
import { until } from '../../test/support/until.ts'
import { consoleBrowser } from './test-console.ts'

const browser = consoleBrowser()

/** Opens tabs of one browser that record notifications and do not have the focus. */
async function openTabs(count: number) {
  const core = await browser.newDemoCore()
  const page = await browser.open(core, 'nowhere')
  const shown: string[] = []
  const context = page.context()
  await context.exposeBinding('recordNotification', (_, text: string) => void shown.push(text))
  await context.addInitScript(() => {
    const { recordNotification } = globalThis as unknown as { recordNotification(text: string): void }
    document.hasFocus = () => false
    class RecordedNotification {
      static permission = 'granted'
      static requestPermission = async () => 'granted'
      onclick = () => {}
      constructor(title: string, { body = '', tag = '' }: NotificationOptions) {
        if (body !== '') recordNotification(`${title}: ${body} (${tag})`)
      }
      close() {}
    }
    Object.assign(globalThis, { Notification: RecordedNotification })
    navigator.setAppBadge = async (badge) => void Object.assign(globalThis, { badge })
  })
  const tabs: Page[] = []
  for (let index = 0; index < count; index += 1) {
    const tab = index === 0 ? page : await context.newPage()
    await tab.goto(`${core.url}/console/conversations`)
    await tab.getByText('Live', { exact: true }).waitFor()
    tabs.push(tab)
  }
  return { core, tabs, shown }
}

describe('notifications', () => {
  itLong('appear if all tabs are hidden', async () => {
    const { core, tabs, shown } = await openTabs(2)
    await tabs[0]!.getByRole('button', { name: 'Notifications and sound' }).click()
    await tabs[1]!.getByRole('button', { name: 'Notifications and sound', pressed: true }).waitFor()
    for (const tab of tabs) await setVisible(tab, false)
    await until('one stream', () => core.watcherCount() === 1)
    core.conversations.visitorSays('cnv_maria', 'Is anybody there?')
    await until('the notification', () => shown.length === 1)
  })

  it('the title, the icon of the tab and that of the home screen show the number of unread conversations', async () => {
    const { core, tabs } = await openTabs(1)
    const [tab] = tabs
    const icon = () => tab!.locator('link[rel=icon]').getAttribute('href')
    core.conversations.visitorSays('cnv_x7f3', 'Count me')
    await until('the count in the title', async () => /^\(\d+\) Inbox/.test(await tab!.title()))
    await until('the badge', async () =>
      (await tab!.title()).startsWith(`(${await tab!.evaluate('globalThis.badge')})`),
    )
    await until('the count in the icon', async () => (await icon())!.startsWith('blob:'))
  })
})
