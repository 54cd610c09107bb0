import type { Page } from 'playwright-core'

/** Sets the visibility that the scripts of a tab read. A headless browser reports every tab as visible. */
export async function setVisible(page: Page, isVisible: boolean) {
  await page.evaluate(`
    Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => '${isVisible ? 'visible' : 'hidden'}' })
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${!isVisible} })
    document.dispatchEvent(new Event('visibilitychange'))
  `)
}

/**
 * Hides and freezes a tab: its timers and callbacks stop until `thaw`, which also shows the tab. A
 * real browser freezes a tab minutes after it was hidden. Here the tab freezes at once. The page
 * has no time to cancel its requests, so they stay open.
 */
export async function freeze(page: Page): Promise<{ thaw(): Promise<void> }> {
  const devtools = await page.context().newCDPSession(page)
  // Playwright emulates focus on every page, and a focused page cannot be hidden or frozen. So the
  // emulation is off while the tab is frozen.
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
