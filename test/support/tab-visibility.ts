import type { Page } from 'playwright-core'

/**
 * Hides or shows a tab for its scripts. A headless browser shows all tabs, so the reported visibility is replaced.
 */
export async function setVisible(page: Page, isVisible: boolean) {
  await page.evaluate(`
    Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => '${isVisible ? 'visible' : 'hidden'}' })
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${!isVisible} })
    document.dispatchEvent(new Event('visibilitychange'))
  `)
}

/**
 * Hides and freezes a tab. Its timers and callbacks stop until it is thawed, which also shows it. A real browser
 * freezes a tab minutes later. Here requests that the page cancels on hiding stay open.
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

/** Playwright's own DevTools session of a page. It has no public API. */
function ownSessionOf(page: Page): DevtoolsSession {
  const { _connection } = page as unknown as { _connection: { toImpl(page: Page): unknown } }
  const { delegate } = _connection.toImpl(page) as { delegate: { _mainFrameSession: { _client: DevtoolsSession } } }
  return delegate._mainFrameSession._client
}
