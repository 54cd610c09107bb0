import type { Page } from 'playwright-core'
import type { consoleBrowser } from './test-console.ts'

/** Opens tabs of one browser that record notifications and do not have the focus. */
export async function openTabs(browser: ReturnType<typeof consoleBrowser>, count: number) {
  const core = await browser.newDemoCore()
  const page = await browser.open(core, 'nowhere')
  const shown: string[] = []
  const context = page.context()
  await context.exposeBinding('recordNotification', (_, text: string) => void shown.push(text))
  await context.addInitScript(() => {
    const state = globalThis as unknown as { isFocused: boolean; recordNotification(text: string): void }
    state.isFocused = false
    document.hasFocus = () => state.isFocused
    class RecordedNotification {
      static permission = 'granted'
      static requestPermission = async () => 'granted'
      onclick = () => {}
      constructor(title: string, { body = '', tag = '' }: NotificationOptions) {
        if (body !== '') state.recordNotification(`${title}: ${body} (${tag})`)
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
  const focus = (tab: Page, isFocused: boolean) =>
    tab.evaluate((value) => {
      Object.assign(globalThis, { isFocused: value })
      window.dispatchEvent(new Event(value ? 'focus' : 'blur'))
    }, isFocused)
  return { core, tabs, shown, focus }
}

export const toggle = (tab: Page) => tab.getByRole('button', { name: 'Notifications and sound' }).click()
