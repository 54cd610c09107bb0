import { expect, it } from 'vitest'
import { botOf, robo } from '../support/bot.ts'
import { useLiveConsole } from './live-console.ts'

const live = useLiveConsole()
const { button, openConversation } = live

it('an operator sees a bot’s message and request, stops the bot and gives the conversation back', async () => {
  const { page } = live
  const { visitor, stream } = await openConversation('Do you ship to Graz?')
  const { conversationId } = visitor.session
  const bots = await botOf(live.stack())
  const bot = { displayName: robo.displayName }
  const say = (clientOperationId: string) =>
    bots
      .sendBotMessage({
        conversationId,
        clientOperationId,
        body: `Text of ${clientOperationId}`,
        bot,
        quickReplies: ['Yes'],
      })
      .then(
        () => 'sent',
        ({ rawMessage }) => rawMessage,
      )
  expect(await say('one')).toBe('sent')
  await page.locator('.message.bot', { hasText: 'Text of one' }).waitFor()
  expect(await page.locator('.message.bot .message-head').textContent()).toBe('Robo (bot)')
  await page.locator('.message.bot .quick-replies', { hasText: 'Yes' }).waitFor()

  await button('Stop bot').click()
  await page.locator('.happened', { hasText: 'The bot was stopped' }).waitFor()
  expect(await say('two')).toBe('BotStopped')
  await button('Give back to bot').click()
  await page.locator('.happened', { hasText: 'Given back to the bot' }).waitFor()
  expect(await say('three')).toBe('sent')

  await bots.requestHuman({ conversationId, clientOperationId: 'help', bot, summary: 'Wants a discount.' })
  await page.locator('.happened', { hasText: 'Robo (bot) asked for a person' }).waitFor()
  await page.locator('.message.note', { hasText: 'Wants a discount.' }).waitFor()
  await page.locator('.row.unread', { hasText: 'Wants a person' }).waitFor()
  await button('Assign to me').click()
  await page.locator('.row:not(.unread)', { hasText: 'Mine' }).waitFor()
  stream.close()
})
