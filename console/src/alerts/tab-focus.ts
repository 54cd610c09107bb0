const prefix = 'service.console.focus '

/**
 * Tells the other tabs which conversation this tab shows while it has the focus. The browser
 * releases the lock of a tab that closes or crashes. On http pages there are no locks. `query` then
 * checks only this tab.
 */
export function createTabFocus(locks: LockManager | undefined, page: Document, window: EventTarget) {
  let shown = ''
  let release = () => {}

  function update() {
    release()
    release = () => {}
    if (!page.hasFocus() || page.hidden) return
    let isReleased = false
    release = () => {
      isReleased = true
    }
    const hold = () =>
      new Promise<void>((resolve) => {
        if (isReleased) resolve()
        else release = resolve
      })
    // Without storage, the browser refuses locks, and this tab counts alone.
    locks?.request(`${prefix}${shown}`, { mode: 'shared' }, hold).catch(() => {})
  }

  for (const name of ['focus', 'blur', 'visibilitychange'])
    (name === 'visibilitychange' ? page : window).addEventListener(name, update)

  return {
    /** Sets the conversation that this tab shows. */
    show(conversationId: string | undefined) {
      shown = conversationId ?? ''
      update()
    },
    /**
     * Returns whether a tab of the console has the focus, and whether that tab shows the
     * conversation.
     */
    async query(conversationId: string): Promise<{ isFocused: boolean; isShown: boolean }> {
      const found = await locks?.query().catch(() => undefined)
      if (!found) return { isFocused: page.hasFocus(), isShown: page.hasFocus() && shown === conversationId }
      const held = found.held?.map(({ name = '' }) => name) ?? []
      return {
        isFocused: held.some((name) => name.startsWith(prefix)),
        isShown: held.includes(`${prefix}${conversationId}`),
      }
    },
    stop() {
      for (const name of ['focus', 'blur', 'visibilitychange'])
        (name === 'visibilitychange' ? page : window).removeEventListener(name, update)
      release()
    },
  }
}

export type TabFocus = ReturnType<typeof createTabFocus>
