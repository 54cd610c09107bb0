import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { itLong } from '../support/is-long.ts'
import { inWidget, open, say, useWidgetPages } from './widget-under-test.ts'

const { gateway, visit } = useWidgetPages({ capabilities: { rating: true } })
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
  it('the visitor rates by keyboard, with a line of text, and is thanked; a reopening removes the card', async () => {
    const { page, complaints } = await closedChat()
    talk().emit('rating.requested')
    await page.getByRole('button', { name: 'Very good' }).focus()
    await page.keyboard.press('Enter')
    await page.keyboard.type('  Quick and friendly ')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Thank you for your rating.' }).waitFor()
    expect(gateway().features.ratings).toEqual([{ score: 5, comment: 'Quick and friendly' }])
    expect(await inWidget(page, '.face').filter({ visible: true }).count()).toBe(0)
    await page.reload()
    await page.getByRole('button', { name: 'Save transcript' }).waitFor()
    talk().emit('conversation.reopened')
    await page.getByRole('button', { name: 'Save transcript' }).waitFor({ state: 'hidden' })
    expect(complaints).toEqual([])
  })

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
