import type { Page } from 'playwright-core'

/**
 * Hides or shows a tab as the page sees it. A headless browser shows every tab at once, so what the page is told is changed here.
 */
export async function setVisible(page: Page, isVisible: boolean) {
  const state = isVisible ? 'visible' : 'hidden'
  await page.evaluate(`
    Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => '${state}' })
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${!isVisible} })
    document.dispatchEvent(new Event('visibilitychange'))
  `)
}

/** Freezes a tab: none of its scripts runs until it is thawed. */
export async function freeze(page: Page): Promise<{ thaw(): Promise<void> }> {
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('Page.setWebLifecycleState', { state: 'frozen' })
  return {
    async thaw() {
      await devtools.send('Page.setWebLifecycleState', { state: 'active' })
      await devtools.detach()
    },
  }
}
