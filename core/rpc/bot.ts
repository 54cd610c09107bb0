import type { ConnectRouter } from '@connectrpc/connect'
import { BotService } from '#proto/bot/v1/bot_pb.js'
import type { CoreContext } from '../context.ts'
import { callerOf } from '../transport/caller.ts'
import { fromTypingState } from './conversations.ts'
import { countSends } from './messaging.ts'
import { fromAgent, toMessage } from './messaging-values.ts'

export function botService(router: ConnectRouter, { bots, typing, metrics }: CoreContext): void {
  const counted = countSends(metrics)
  const unnamed = { displayName: '' }

  router.service(BotService, {
    async sendBotMessage({ conversationId, clientOperationId, body, bot, quickReplies }, context) {
      const send = { conversationId, clientOperationId, body, bot: fromAgent(bot) ?? unnamed, quickReplies }
      const { event, replayed } = await counted('bot', bots.send(send, callerOf(context).workspaceId))
      return { message: toMessage(event), replayed }
    },

    async setBotTyping({ conversationId, state, bot }, context) {
      const request = { conversationId, state: fromTypingState(state), bot: fromAgent(bot) ?? unnamed }
      await typing.setByBot(request, callerOf(context).workspaceId)
      return {}
    },

    async requestHuman({ conversationId, clientOperationId, bot, summary }, context) {
      const request = { conversationId, clientOperationId, bot: fromAgent(bot) ?? unnamed, summary }
      return { replayed: !(await bots.requestHuman(request, callerOf(context).workspaceId)) }
    },
  })
}
