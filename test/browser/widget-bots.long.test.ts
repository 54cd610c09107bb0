import { expect, it } from 'vitest'
import { botOf, robo } from '../support/bot.ts'
import { until } from '../support/until.ts'
import { expectAccessible, online, useFeatures, write } from './widget-feature-page.ts'

const features = useFeatures({ TYPING_SECONDS: '60' })

it('a bot has its name; a tap on a quick reply sends it as a message, and the replies go with the next message', async () => {
  const { page, conversationId, complaints } = await features.visit()
  await online(page)
  await write(page, 'Hello')
  const bots = await botOf(features.shop().stack)
  const bot = { displayName: robo.displayName }
  await bots.setBotTyping({ conversationId, state: 1, bot })
  await page.getByText('Robo is typing').waitFor()
  const quickReplies = ['Prices', 'A person, please']
  const body = 'What is it about?'
  await bots.sendBotMessage({ conversationId, clientOperationId: 'one', body, bot, quickReplies })
  const reply = page.getByRole('button', { name: 'A person, please' })
  await reply.waitFor()
  expect(await page.getByText('Robo is typing').count()).toBe(0)
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
