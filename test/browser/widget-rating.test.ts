import { readFile } from 'node:fs/promises'
import { describe, expect } from 'vitest'
import { itLong } from '../support/is-long.ts'
import { inWidget, open, say, useWidgetPages } from './widget-under-test.ts'

const { gateway, serve, visit } = useWidgetPages({ capabilities: { rating: true } })
const talk = () => gateway().conversation('pk_friendly')

async function closedChat(options = {}) {
  const visited = await visit({ context: { reducedMotion: 'reduce' }, ...options })
  await open(visited.page)
  await say(visited.page, 'Do you ship to Graz?')
  await visited.page.getByText(/· Sent$/).waitFor()
  talk().agentSays('We do.')
  talk().emit('conversation.closed')
  return visited
}

describe('after the conversation was closed', () => {
  itLong(
    'the visitor rates by keyboard, with a line of text, and is thanked; a reopening removes the card',
    async () => {
      const { page, complaints } = await closedChat()
      talk().emit('rating.requested')
      await page.getByRole('button', { name: 'Very good' }).focus()
      await page.keyboard.press('Enter')
      await page.keyboard.type('  Quick and friendly ')
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'Thank you for your rating.' }).waitFor()
      expect(gateway().features.ratings).toEqual([{ score: 5, comment: 'Quick and friendly' }])
      expect(await inWidget(page, '.face').filter({ visible: true }).count()).toBe(0)
      expect(await inWidget(page, '.status').textContent()).toBe('We are online')
      await page.reload()
      await page.getByRole('button', { name: 'Save transcript' }).waitFor()
      talk().emit('conversation.reopened')
      await page.getByRole('button', { name: 'Save transcript' }).waitFor({ state: 'hidden' })
      expect(complaints).toEqual([])
    },
  )

  itLong('a rating that fails can be sent again, and what was written stays', async () => {
    const { page } = await closedChat()
    talk().emit('rating.requested')
    gateway().features.failNext('/ratings', { status: 503, code: 'ServiceUnavailable' })
    await page.getByRole('button', { name: 'Bad', exact: true }).click()
    await page.getByPlaceholder('Anything to add?').fill('Slow')
    await page.getByRole('button', { name: 'Send rating' }).click()
    await page.getByText('Your rating was not sent.').waitFor()
    await page.getByRole('button', { name: 'Send rating' }).click()
    await page.getByRole('heading', { name: 'Thank you for your rating.' }).waitFor()
    expect(gateway().features.ratings).toEqual([{ score: 2, comment: 'Slow' }])
  })

  itLong('another tab shows that the visitor has rated', async () => {
    const { page } = await closedChat()
    talk().emit('rating.requested')
    await page.getByRole('button', { name: 'Good', exact: true }).waitFor()
    talk().emit('rating.given', { score: 4 })
    await page.getByRole('heading', { name: 'Thank you for your rating.' }).waitFor()
  })

  itLong('the transcript is a text file with each message, also without a rating', async () => {
    const { page } = await closedChat()
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save transcript' }).click(),
    ])
    expect(download.suggestedFilename()).toBe('chat.txt')
    const text = await readFile(await download.path(), 'utf8')
    expect(text).toMatch(/^\ufeff\[.+\] You: Do you ship to Graz\?\n\[.+\] Anna Keller: We do\.\n$/)
    expect(await inWidget(page, '.face').filter({ visible: true }).count()).toBe(0)
  })
})

/** Runs in the page: returns the message field and the buttons of a card that cannot be reached. */
const hiddenParts = `(shown) => {
  const root = shown.getRootNode()
  const field = root.querySelector('.field').getBoundingClientRect()
  const isIn = field.height > 15 && field.top >= 0 && field.bottom <= innerHeight
  const hidden = [...shown.querySelectorAll('button')].filter((button) => {
    button.scrollIntoView({ block: 'nearest' })
    const { left, top, width, height } = button.getBoundingClientRect()
    return button.checkVisibility() && !button.contains(root.elementFromPoint(left + width / 2, top + height / 2))
  })
  return [...(isIn ? [] : ['field']), ...hidden.map(({ textContent }) => textContent)]
}`

itLong(
  'consent, a request and the rating leave the message field in the panel, and their buttons in reach, on small screens',
  async () => {
    await serve({
      capabilities: { rating: true, navigation: true },
      consent: { required: true, policyVersion: '1', policyUrl: 'https://shop.example/privacy' },
    })
    const { page } = await visit({ context: { reducedMotion: 'reduce', viewport: { width: 683, height: 310 } } })
    async function check(card: string) {
      await inWidget(page, card).waitFor()
      for (const [width, height] of [
        [683, 310],
        [640, 360],
        [320, 256],
        [390, 300],
      ] as const) {
        await page.setViewportSize({ width, height })
        const shown = `document.querySelector('[data-service-widget]').shadowRoot.querySelector('${card}')`
        const found = () => page.evaluate(`(${hiddenParts})(${shown})`)
        await expect.poll(found, { message: `${card} at ${width}×${height}` }).toEqual([])
      }
    }
    await open(page)
    await check('.consent')
    await page.getByRole('button', { name: 'I agree' }).click()
    await say(page, 'Do you ship to Graz?')
    await page.getByText(/· Sent$/).waitFor()
    gateway().features.request(talk(), 'navigation', { url: 'https://shop.example/shipping', label: 'Shipping' })
    await check('.request')
    await page.getByRole('button', { name: 'No thanks' }).click()
    talk().emit('conversation.closed')
    talk().emit('rating.requested')
    await check('.rating')
  },
)
