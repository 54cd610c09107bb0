import { expect, it } from 'vitest'
import { botOf, robo } from '../support/bot.ts'
import { until } from '../support/until.ts'
import { expectAccessible, online, useFeatures, write } from './widget-feature-page.ts'

const features = useFeatures({ TYPING_SECONDS: '60' })

it('a bot’s message shows the bot’s name, and a tap on a quick reply sends it and removes all quick replies', async () => {
  const { page, conversationId, complaints } = await features.visit()
  await online(page)
  await write(page, 'Hello')
  const bots = await botOf(features.shop().stack)
  const bot = { displayName: robo.displayName }
  await bots.setBotTyping({ conversationId, state: 1, bot })
  await page.getByText('Robo · Assistant is typing').waitFor()
  const quickReplies = ['Prices', 'A person, please']
  const body = 'What is it about?'
  await bots.sendBotMessage({ conversationId, clientOperationId: 'one', body, bot, quickReplies })
  const reply = page.getByRole('button', { name: 'A person, please' })
  await reply.waitFor()
  expect(await page.getByText('Robo · Assistant is typing').count()).toBe(0)
  expect(await page.locator('.name', { hasText: 'Robo' }).isVisible()).toBe(true)
  await expectAccessible(page)
  await reply.focus()
  await page.keyboard.press('Enter')
  await reply.waitFor({ state: 'hidden' })
  expect(await page.getByRole('button', { name: 'Prices' }).isVisible()).toBe(false)
  // The focus must not leave the chat with the button.
  expect(await page.evaluate('document.activeElement.matches("[data-service-widget]")')).toBe(true)
  const { messaging } = features.operator()
  const messages = await until('the message', async () => {
    const { messages: found } = await messaging.listMessages({ conversationId })
    return found.length === 3 ? found : undefined
  })
  expect(messages[2]).toMatchObject({ body: 'A person, please', author: { kind: 'visitor' } })
  expect(messages[2]?.clientOperationId).toBeTruthy()
  await bots.sendBotMessage({
    conversationId,
    clientOperationId: 'two',
    body: 'Anything else?',
    bot,
    quickReplies: ['No'],
  })
  await page.getByRole('button', { name: 'No', exact: true }).waitFor()
  await page.reload()
  await page.getByRole('button', { name: 'No', exact: true }).waitFor()
  expect(complaints).toEqual([])
})

it('opening replies are shown before the first message, in the visitor’s language, and a tap sends one', async () => {
  const { workspaces } = features.operator()
  const texts = ['Where is my order?', 'Do you ship to Graz?', 'A person, please']
  const appearance = {
    openingReplies: { texts },
    translations: { de: { openingReplies: { texts: ['Wo ist mein Paket?'] } } },
  }
  await workspaces.updateInstallation({ siteKey: features.shop().siteKey, appearance })
  await until('the replies', async () => JSON.stringify(await features.configuration()).includes('to Graz'))
  const { page, conversationId, complaints } = await features.visit()
  await online(page)
  const reply = page.getByRole('button', { name: 'Do you ship to Graz?' })
  await reply.waitFor()
  expect(await page.locator('.reply').allTextContents()).toEqual(texts)
  await expectAccessible(page)
  await reply.focus()
  await page.keyboard.press('Enter')
  await page.getByText(/· Sent$/).waitFor()
  expect(await reply.isVisible()).toBe(false)
  // The focus must not leave the chat with the button.
  expect(await page.evaluate('document.activeElement.matches("[data-service-widget]")')).toBe(true)
  const { messages } = await features.operator().messaging.listMessages({ conversationId })
  expect(messages).toMatchObject([{ body: 'Do you ship to Graz?', author: { kind: 'visitor' } }])
  // No reply is offered while the messages are not loaded.
  await page.addInitScript(`(function look() {
    const reply = document.querySelector('[data-service-widget]')?.shadowRoot?.querySelector('.greeting + .replies .reply')
    if (reply?.checkVisibility()) document.documentElement.dataset.offered = 'true'
    requestAnimationFrame(look)
  })()`)
  await page.reload()
  await page.locator('.row', { hasText: 'Do you ship to Graz?' }).waitFor()
  expect(await page.locator('.greeting + .replies').isVisible()).toBe(false)
  expect(await page.evaluate('document.documentElement.dataset.offered')).toBeUndefined()
  expect(complaints).toEqual([])
  await workspaces.updateInstallation({
    siteKey: features.shop().siteKey,
    appearance: { openingReplies: { texts: [] } },
  })
})

it('an answer grows in place, is announced when it ends, and is stopped with the button in the place of Send', async () => {
  const { page, conversationId, complaints } = await features.visit()
  await online(page)
  await write(page, 'Hello')
  const bots = await botOf(features.shop().stack)
  const bot = { displayName: robo.displayName }
  let offset = 0
  const append = async (clientOperationId: string, text: string, done = false) => {
    const { length, state } = await bots.appendBotMessage({
      conversationId,
      clientOperationId,
      offset,
      text,
      done,
      bot,
    })
    offset = length
    return state
  }
  // Orca reads each element that is added to a live one, also if the added one is not live.
  await page.evaluate(`(() => {
    globalThis.said = []
    new MutationObserver((records) => {
      for (const { target, addedNodes } of records)
        for (const node of target.closest('[aria-live=off], [aria-hidden]') ? [] : addedNodes) said.push(node.textContent)
    }).observe(document.querySelector('[data-service-widget]').shadowRoot.querySelector('.list'), { childList: true, subtree: true })
  })()`)
  await append('a', '')
  await page.getByText('Robo · Assistant is typing').waitFor()
  expect(await page.locator('[data-author=agent] .bubble').isVisible()).toBe(false)
  await append('a', 'One ')
  const stateOf = async (text: string) => {
    const { messages } = await features.operator().messaging.listMessages({ conversationId })
    return messages.find(({ body }) => body.startsWith(text))?.state
  }
  const row = page.locator('.row', { hasText: 'One' })
  await row.getByText('One').waitFor()
  expect(await row.getAttribute('aria-live')).toBe('off')
  await page.getByText('Robo · Assistant is typing').waitFor()
  await page.locator('.name', { hasText: 'Robo · Assistant' }).waitFor()
  await expectAccessible(page)
  const lines = Array.from({ length: 30 }, (_, index) => `line ${index}\n`).join('')
  await append('a', lines)
  await row.getByText('line 29').waitFor()
  expect(await page.evaluate('said.join()')).toBe('')
  // The empty row for the next answer is alone in its group. Otherwise no later row would begin a new group.
  expect(await page.locator('.rows').last().locator('> *').count()).toBe(1)
  expect(await page.locator('.rows').last().locator('.row').count()).toBe(0)
  const scroller = page.locator('.scroller')
  // A reader who has scrolled up stays where they are.
  await scroller.evaluate((one) => one.scrollTo(0, one.scrollHeight / 3))
  await until('the place', async () => page.locator('.jump').isVisible())
  const top = await scroller.evaluate((one) => one.scrollTop)
  await append('a', 'the last line')
  await row.getByText('the last line').waitFor()
  expect(await scroller.evaluate((one) => one.scrollTop)).toBe(top)
  // Its end is not read yet.
  await until('the receipt', async () => (await stateOf('One')) === 'delivered')
  expect(await page.getByRole('button', { name: 'Send message' }).isVisible()).toBe(false)
  const stop = page.getByRole('button', { name: 'Stop', exact: true })
  await stop.focus()
  await page.keyboard.press('Enter')
  await stop.waitFor({ state: 'hidden' })
  await page.getByRole('button', { name: 'Send message' }).waitFor()
  expect(await page.locator('.field').evaluate((one) => one.matches(':focus'))).toBe(true)
  expect(await row.getAttribute('aria-live')).toBeNull()
  expect(await page.evaluate('said.filter(Boolean)')).toEqual([expect.stringContaining('the last line')])
  expect(await page.getByText('is typing').count()).toBe(0)
  expect(await append('a', ' and more')).toBe('stopped')
  offset = 0
  await append('b', 'Whole', true)
  await page.getByText('Whole').waitFor()
  await page.locator('.jump').click()
  await until('the receipt', async () => (await stateOf('Whole')) === 'read')
  expect(await page.getByText('and more').count()).toBe(0)
  expect(await row.getByText('Answer stopped.').isVisible()).toBe(true)
  await page.reload()
  await row.getByText('Answer stopped.').waitFor()
  expect(await page.locator('.ended').count()).toBe(1)
  expect(complaints).toEqual([])
})

it('a visitor asks for a person while the bot writes, is answered at once, and asks again when the bot is back', async () => {
  const { page, conversationId, complaints } = await features.visit()
  await online(page)
  const ask = page.getByRole('button', { name: 'Talk to a person' })
  await write(page, 'Hello')
  expect(await ask.isVisible()).toBe(false)
  const bots = await botOf(features.shop().stack)
  const bot = { displayName: robo.displayName }
  const append = (clientOperationId: string) =>
    bots.appendBotMessage({ conversationId, clientOperationId, offset: 0, text: 'Let me see', bot })
  await append('one')
  await ask.waitFor()
  await expectAccessible(page)
  await ask.focus()
  await page.keyboard.press('Enter')
  await page.getByText('We are asking a colleague.').waitFor()
  await page.locator('.status', { hasText: 'We are online' }).waitFor()
  expect(await ask.isVisible()).toBe(false)
  // The focus must not leave the chat with the button.
  expect(await page.evaluate('document.activeElement.matches("[data-service-widget]")')).toBe(true)
  // The widget shows the line as soon as its message is written.
  await until('the end of the answer', async () => (await append('one')).state === 'interrupted')
  await expect(append('two')).rejects.toThrow('BotStopped')
  const { messaging } = features.operator()
  const { conversation } = await messaging.getConversation({ conversationId })
  expect(conversation?.bot).toMatchObject({ stopped: true, humanRequestedAt: expect.anything() })
  await page.reload()
  await page.getByText('We are asking a colleague.').waitFor()
  expect(await ask.isVisible()).toBe(false)
  await messaging.resumeBot({ conversationId })
  await append('two')
  await ask.waitFor()
  await messaging.sendAgentMessage({
    conversationId,
    clientOperationId: 'agent',
    body: 'Hi',
    agent: { displayName: 'Ada' },
  })
  await ask.waitFor({ state: 'hidden' })
  expect(complaints).toEqual([])
})
