import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { itLong } from '../support/is-long.ts'
import {
  choosePicture,
  inWidget,
  open,
  useWidget,
  withOffline,
  withPreChat,
  withRequests,
} from './widget-under-test.ts'

const { gateway, serve, visit, ask, askForScreenshot, showLongConversation, showEndedSession } = useWidget()

describe('without a mouse', () => {
  const focused = (page: Page) =>
    page.evaluate(`(() => {
      const inside = document.activeElement.shadowRoot?.activeElement
      if (!inside) return document.activeElement.tagName
      return inside.getAttribute('aria-label') || inside.labels?.[0]?.textContent || inside.textContent
    })()`)

  it('Tab reaches every control in visual order, and leaves the chat', async () => {
    const page = await visit({ siteKey: 'pk_rate_limited_long' })
    await inWidget(page, '.launcher').waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    expect(await focused(page)).toBe('Open chat')
    await page.keyboard.press('Enter')
    await inWidget(page, '.header[data-state="online"]').waitFor()
    expect(await focused(page)).toBe('Your message')
    await page.keyboard.type('Please')
    await page.keyboard.press('Enter')
    await inWidget(page, '.retry').waitFor()
    await page.keyboard.type('More')

    const back: unknown[] = []
    for (let count = 0; count < 4; count += 1) {
      await page.keyboard.press('Shift+Tab')
      back.push(await focused(page))
    }
    expect(back).toEqual(['Retry', 'Conversation', 'Close chat', 'Close chat'])
    for (let count = 0; count < 5; count += 1) await page.keyboard.press('Tab')
    expect(await focused(page)).toBe('Send message')
    await page.keyboard.press('Tab')
    expect(await focused(page)).toBe('BODY')
  })

  it('the focus stays inside a full-screen panel, and Escape moves the focus back to the launcher', async () => {
    const page = await visit({ context: { viewport: { width: 390, height: 844 } } })
    await inWidget(page, '.launcher').focus()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Nordlicht Support' })
    await dialog.waitFor()
    expect(await dialog.getAttribute('aria-modal')).toBe('true')
    await page.getByText('We are online').waitFor()
    const seen = new Set<unknown>()
    for (let count = 0; count < 8; count += 1) {
      await page.keyboard.press('Tab')
      seen.add(await focused(page))
    }
    expect([...seen].sort()).toEqual(['Close chat', 'Conversation', 'Send message', 'Your message'])
    await page.keyboard.press('Shift+Tab')
    expect(seen.has(await focused(page))).toBe(true)
    await page.keyboard.press('Escape')
    expect(await focused(page)).toBe('Open chat')
  })

  /** Presses Tab, or Shift+Tab, until an element with this name has the focus. */
  async function reach(page: Page, name: RegExp, key: 'Tab' | 'Shift+Tab' = 'Tab') {
    const passed: unknown[] = []
    for (let presses = 0; presses < 15; presses += 1) {
      await page.keyboard.press(key)
      passed.push(await focused(page))
      if (name.test(String(passed.at(-1)))) return
    }
    throw new Error(`${name} was not reached; the focus went over ${passed.join(', ')}`)
  }

  itLong('a failed message can be retried, and the focus is kept', async () => {
    const page = await visit({ siteKey: 'pk_rate_limited_long' })
    await open(page)
    await page.keyboard.type('Please')
    await page.keyboard.press('Enter')
    await inWidget(page, '.retry').waitFor()
    await reach(page, /^Retry$/, 'Shift+Tab')
    gateway().conversation('pk_rate_limited_long').agentSays('Are you there?')
    await page.getByText('Are you there?').waitFor()
    expect(await focused(page)).toBe('Retry')
    await page.keyboard.press('Enter')
    await page.getByText(/· Sent$/).waitFor()
    expect(await focused(page)).toBe('Conversation')
    await reach(page, /^Your message$/)
    expect(
      gateway()
        .conversation('pk_rate_limited_long')
        .messages.map(({ body }) => body),
    ).toContain('Please')
  })

  itLong('the button that scrolls to the newest message moves the focus to the conversation', async () => {
    const page = await visit()
    await showLongConversation(page)
    await inWidget(page, '.field').focus()
    await reach(page, /newest|latest/i, 'Shift+Tab')
    await page.keyboard.press('Enter')
    await inWidget(page, '.jump').waitFor({ state: 'hidden' })
    expect(await focused(page)).toBe('Conversation')
  })

  itLong('a rejected form can be corrected and submitted, and then the composer gets the focus', async () => {
    await serve(withPreChat)
    const page = await visit()
    await inWidget(page, '.launcher').focus()
    await page.keyboard.press('Enter')
    await expect.poll(() => focused(page)).toBe('Your name (optional)')
    await page.keyboard.type('Ada')
    await reach(page, /^Email address$/)
    await page.keyboard.type('ada at')
    await reach(page, /^What is it about/)
    await page.keyboard.type('Lamps')
    await reach(page, /^Start chat$/)
    await page.keyboard.press('Enter')
    await expect.poll(() => focused(page)).toBe('Email address')
    await page.keyboard.press('ControlOrMeta+A')
    await page.keyboard.type('ada@example.com')
    await page.keyboard.press('Enter')
    await expect.poll(() => focused(page)).toBe('Your message')
    expect(gateway().features.leads).toEqual([{ name: 'Ada', email: 'ada@example.com', question: 'Lamps' }])
  })

  itLong('the offline form can be skipped to write a message, and opened again', async () => {
    await serve(withOffline)
    const page = await visit()
    await inWidget(page, '.launcher').focus()
    await page.keyboard.press('Enter')
    await expect.poll(() => focused(page)).toBe('Email address')
    await reach(page, /^Write a message instead$/)
    await page.keyboard.press('Enter')
    await expect.poll(() => focused(page)).toBe('Your message')
    await reach(page, /^Leave your details instead$/, 'Shift+Tab')
    await page.keyboard.press('Space')
    await expect.poll(() => focused(page)).toBe('Email address')
    await page.keyboard.type('ada@example.com')
    await reach(page, /^Send details$/)
    await page.keyboard.press('Space')
    await expect.poll(() => focused(page)).toBe('Your message')
    expect(gateway().features.leads).toEqual([{ email: 'ada@example.com' }])
  })

  itLong(
    'a picture can be chosen, discarded and chosen again; its upload can be stopped and started again',
    async () => {
      await serve(withRequests)
      const page = await visit()
      const id = await askForScreenshot(page)
      await inWidget(page, '.field').focus()
      await reach(page, /^Share screen$/, 'Shift+Tab')
      await reach(page, /^Choose a picture$/)
      await choosePicture(page, () => page.keyboard.press('Enter'))
      expect(await focused(page)).toBe('Send picture')
      await reach(page, /^Discard$/)
      await page.keyboard.press('Enter')
      expect(await focused(page)).toBe('Share screen')
      await reach(page, /^Choose a picture$/)
      await choosePicture(page, () => page.keyboard.press('Space'))
      const release = gateway().features.hold('acknowledgements')
      await page.keyboard.press('Enter')
      await expect.poll(() => focused(page)).toBe('Stop')
      await page.keyboard.press('Enter')
      release()
      await expect.poll(() => focused(page)).toBe('Send picture')
      expect(gateway().features.uploads.size).toBe(0)
      await page.keyboard.press('Enter')
      await page.getByText('You sent a screenshot.').waitFor()
      expect(await focused(page)).toBe('Your message')
      expect(gateway().features.commandState(id)).toBe('uploaded')
    },
  )

  itLong.each(['navigation', 'screenshot'] as const)(
    'a %s request can be declined, and then the composer gets the focus',
    async (kind) => {
      await serve(withRequests)
      const page = await visit()
      await open(page)
      const id = ask(kind, { url: 'https://elsewhere.example/' })
      await page.getByRole('button', { name: 'No thanks' }).waitFor()
      await reach(page, /^No thanks$/, 'Shift+Tab')
      await page.keyboard.press('Enter')
      await page.getByRole('button', { name: 'No thanks' }).waitFor({ state: 'detached' })
      await expect.poll(() => focused(page)).toBe('Your message')
      expect(gateway().features.commandState(id)).toMatch(/^(declined|denied)$/)
    },
  )

  itLong('a new chat can be started after the previous chat has ended', async () => {
    const page = await visit()
    await showEndedSession(page)
    await inWidget(page, '.scroller').focus()
    await reach(page, /^Start a new chat$/)
    await page.keyboard.press('Enter')
    await expect.poll(() => focused(page)).toBe('Your message')
    expect(gateway().sessionCount('pk_friendly')).toBe(2)
  })
})
