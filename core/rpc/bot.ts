import type { ConnectRouter } from '@connectrpc/connect'
import { BotService } from '#proto/bot/v1/bot_pb.js'
import { appendAsBot, requestHuman, sendAsBot } from '../conversations/bots.ts'
import { setTypingOfBot } from '../conversations/typing.ts'
import type { Core } from '../core.ts'
import { callerWorkspace } from '../transport/caller.ts'
import { correlationIdOf } from '../transport/connect-errors.ts'
import { fromTypingState } from './conversations.ts'
import { fromAgent, toMessage } from './messaging-values.ts'
import { observeSends } from './observed-sends.ts'

export function botService(router: ConnectRouter, core: Core) {
  const observed = observeSends(core)
  const unnamed = { displayName: '' }

  router.service(BotService, {
    async sendBotMessage({ conversationId, clientOperationId, body, bot, quickReplies }, context) {
      const send = { conversationId, clientOperationId, body, bot: fromAgent(bot) ?? unnamed, quickReplies }
      const correlationId = correlationIdOf(context.requestHeader)
      const sending = sendAsBot(core, send, callerWorkspace(context))
      const { event, replayed } = await observed('bot', correlationId, sending)
      return { message: toMessage(event), replayed }
    },

    async appendBotMessage({ bot, ...part }, context) {
      return appendAsBot(core, { ...part, bot: fromAgent(bot) ?? unnamed }, callerWorkspace(context))
    },

    async setBotTyping({ conversationId, state, bot }, context) {
      const request = { conversationId, state: fromTypingState(state), bot: fromAgent(bot) ?? unnamed }
      await setTypingOfBot(core, request, callerWorkspace(context))
      return {}
    },

    async requestHuman({ conversationId, clientOperationId, bot, summary }, context) {
      const request = { conversationId, clientOperationId, bot: fromAgent(bot) ?? unnamed, summary }
      return { replayed: !(await requestHuman(core, request, callerWorkspace(context))) }
    },
  })
}
