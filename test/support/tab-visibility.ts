import type { Page } from 'playwright-core'

/**
 * Hides or shows a tab as its scripts see it. A headless browser shows every tab at once, so what the page is told is changed.
 */
export async function setVisible(page: Page, isVisible: boolean) {
  await page.evaluate(`
    Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => '${isVisible ? 'visible' : 'hidden'}' })
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${!isVisible} })
    document.dispatchEvent(new Event('visibilitychange'))
  `)
}

/**
 * Hides a tab and freezes it: none of its timers and answers runs until it is thawed, which shows it again. A browser freezes
 * a tab minutes after it was hidden; this does both at once, so a request that the page cancels then stays open.
 */
export async function freeze(page: Page): Promise<{ thaw(): Promise<void> }> {
  const devtools = await page.context().newCDPSession(page)
  // Playwright keeps every page focused, and a focused page is neither hidden nor frozen.
  const emulateFocus = (enabled: boolean) => ownSessionOf(page).send('Emulation.setFocusEmulationEnabled', { enabled })
  await emulateFocus(false)
  await devtools.send('Page.setWebLifecycleState', { state: 'frozen' })
  return {
    async thaw() {
      await devtools.send('Page.setWebLifecycleState', { state: 'active' })
      await emulateFocus(true)
      await devtools.detach()
    },
  }
}

interface DevtoolsSession {
  send(method: string, parameters: object): Promise<unknown>
}

/** The session that Playwright itself has with a page. It has no public name. */
function ownSessionOf(page: Page): DevtoolsSession {
  const { _connection } = page as unknown as { _connection: { toImpl(page: Page): unknown } }
  const { delegate } = _connection.toImpl(page) as { delegate: { _mainFrameSession: { _client: DevtoolsSession } } }
  return delegate._mainFrameSession._client
}
