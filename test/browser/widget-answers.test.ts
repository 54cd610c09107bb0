import { AxeBuilder } from '@axe-core/playwright'
import type { Page } from 'playwright-core'
import { describe, expect } from 'vitest'
import { itLong } from '../support/is-long.ts'
import { setVisible } from '../support/tab-visibility.ts'
import { inWidget, open, useWidgetPages } from './widget-under-test.ts'

const { gateway, visit } = useWidgetPages()
const talk = () => gateway().conversation('pk_friendly')
const card = (page: Page) => inWidget(page, '.answer')

async function closedChat(options = {}) {
  const visited = await visit({ context: { reducedMotion: 'reduce' }, ...options })
  await open(visited.page)
  await visited.page.keyboard.press('Escape')
  return visited
}

/**
 * Sets `document.hidden` to true for the scripts of the page. Sends no event, because over HTTP/1.1
 * the stream of a hidden tab may close.
 */
const hide = (page: Page) =>
  page.evaluate(`Object.defineProperty(document, 'hidden', { get: () => true, configurable: true })`)

describe('a new answer while the chat is closed', () => {
  itLong('is shown in a card, which opens the chat; at most four lines of it are visible', async () => {
    const { page, complaints } = await closedChat()
    talk().agentSays(`We do. ${'And more. '.repeat(40)}`)
    await card(page).getByText('Anna Keller').waitFor()
    const text = card(page).locator('.answer-text')
    expect(
      await text.evaluate(
        (one) => one.clientHeight / Number.parseFloat(one.ownerDocument.defaultView!.getComputedStyle(one).lineHeight),
      ),
    ).toBeLessThan(4.2)
    expect((await new AxeBuilder({ page: page as never }).analyze()).violations).toEqual([])
    await card(page).locator('.answer-open').click()
    await inWidget(page, '.field').waitFor()
    await card(page).waitFor({ state: 'detached' })
    expect(complaints).toEqual([])
  })

  itLong(
    'can be closed by button and by keyboard, which gives the focus to the launcher and keeps the count',
    async () => {
      const { page } = await closedChat()
      talk().agentSays('One')
      await card(page).getByRole('button', { name: 'Close preview' }).click()
      await card(page).waitFor({ state: 'detached' })
      talk().agentSays('Two')
      await card(page).getByText('Two').waitFor()
      await card(page).locator('.answer-open').focus()
      await page.keyboard.press('Escape')
      await card(page).waitFor({ state: 'detached' })
      expect(await inWidget(page, '.launcher').evaluate((one) => one.matches(':focus'))).toBe(true)
      await page.getByRole('button', { name: 'Open chat, 2 unread messages' }).waitFor()
      await page.reload()
      await page.getByRole('button', { name: 'Open chat, 2 unread messages' }).waitFor()
      expect(await card(page).count()).toBe(0)
    },
  )

  itLong('plays a sound if the visitor has turned it on, also on the next page of the tab', async () => {
    const { page } = await closedChat({
      pageScript: `window.notes = 0
        const { start } = OscillatorNode.prototype
        OscillatorNode.prototype.start = function (at) { window.notes += 1; start.call(this, at) }`,
    })
    const notes = () => page.evaluate('window.notes')
    const sound = card(page).getByRole('button', { name: 'Sound for new answers' })
    talk().agentSays('One')
    await sound.waitFor()
    expect([await sound.getAttribute('aria-pressed'), await notes()]).toEqual(['false', 0])
    await sound.click()
    expect([await sound.getAttribute('aria-pressed'), await notes()]).toEqual(['true', 2])
    talk().agentSays('Two')
    await expect.poll(notes).toBe(4)
    await page.reload()
    await page.getByRole('button', { name: 'Open chat, 2 unread messages' }).waitFor()
    await page.mouse.click(5, 5)
    talk().agentSays('Three')
    await expect.poll(notes).toBe(2)
    await sound.click()
    talk().agentSays('Four')
    await card(page).getByText('Four').waitFor()
    expect([await sound.getAttribute('aria-pressed'), await notes()]).toEqual(['false', 2])
  })

  itLong('disappears with a withdrawn message', async () => {
    const { page } = await closedChat()
    const { messageId } = talk().agentSays('A slip')
    await card(page).waitFor()
    talk().emit('message.redacted', { messageId })
    await card(page).waitFor({ state: 'detached' })
  })

  itLong('is named in the title of a hidden page, which gets its own title back', async () => {
    const { page } = await closedChat()
    await hide(page)
    talk().agentSays('We do.')
    await expect.poll(() => page.title(), { timeout: 30_000 }).toBe('(1) Anna Keller replied')
    talk().agentSays('Really.')
    await expect.poll(() => page.title(), { timeout: 30_000 }).toBe('(2) Anna Keller replied')
    await setVisible(page, true)
    expect(await page.title()).toBe('A page')
    await hide(page)
    talk().agentSays('Yes.')
    await expect.poll(() => page.title(), { timeout: 30_000 }).toBe('(3) Anna Keller replied')
    await page.evaluate(`document.title = 'Another page'`)
    await setVisible(page, true)
    expect(await page.title()).toBe('Another page')
  })
})
