import { describe, it } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { setVisible } from '../../test/support/tab-visibility.ts'
import { until } from '../../test/support/until.ts'
import { openTabs, toggle } from './alert-tabs.ts'
import { consoleBrowser } from './test-console.ts'

const browser = consoleBrowser()

describe('notifications', () => {
  itLong('appear if all tabs are hidden', async () => {
    const { core, tabs, shown } = await openTabs(browser, 2)
    await toggle(tabs[0]!)
    await tabs[1]!.getByRole('button', { name: 'Notifications and sound', pressed: true }).waitFor()
    for (const tab of tabs) await setVisible(tab, false)
    await until('one stream', () => core.watcherCount() === 1)
    core.conversations.visitorSays('cnv_maria', 'Is anybody there?')
    await until('the notification', () => shown.length === 1)
  })

  it('the title, the icon of the tab and that of the home screen show the number of unread conversations', async () => {
    const { core, tabs } = await openTabs(browser, 1)
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
