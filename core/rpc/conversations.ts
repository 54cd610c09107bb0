import type { ServiceImpl } from '@connectrpc/connect'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import {
  ConversationStatus,
  type MessagingService,
  TypingState as TypingStateMessage,
} from '#proto/messaging/v1/messaging_pb.js'
import type { CoreContext } from '../context.ts'
import type { TypingState } from '../conversations/typing.ts'
import { ServiceError } from '../errors.ts'
import { callerOf, workspaceOf } from './caller.ts'
import { fromAgent, toConversation } from './messaging-values.ts'
import { fromCredentials } from './visitor.ts'
import { watchConversations } from './watch-conversations.ts'

type ConversationMethods = Pick<
  ServiceImpl<typeof MessagingService>,
  | 'listConversations'
  | 'getConversation'
  | 'setTyping'
  | 'setVisitorTyping'
  | 'updateMessageState'
  | 'assignAgent'
  | 'unassignAgent'
  | 'closeConversation'
  | 'watchConversations'
>

/** The methods of `service.messaging.v1.MessagingService` for conversations and typing. */
export function conversationMethods(core: CoreContext): ConversationMethods {
  const { inbox, typing, states, assignments, conversationAccess, conversationSummaries } = core
  return {
    async listConversations({ workspaceId, limit, pageToken, status }, context) {
      const workspace = workspaceOf(context, workspaceId)
      const { conversations, nextPageToken } = await inbox.list({
        workspaceId: workspace,
        status: statusNames[status],
        limit,
        pageToken,
      })
      const summaries = await conversationSummaries.of(conversations)
      return {
        conversations: conversations.map((conversation, index) => toConversation(conversation, summaries[index])),
        nextPageToken,
      }
    },

    async getConversation({ conversationId }, context) {
      // Messages that this process accepted must be visible.
      await inbox.noted()
      const conversation = await conversationAccess.find(conversationId, callerOf(context).workspaceId)
      const [summary] = await conversationSummaries.of([conversation])
      return { conversation: toConversation(conversation, summary) }
    },

    async setTyping({ conversationId, state, agent }, context) {
      const named = fromAgent(agent)
      const request = { conversationId, state: fromTypingState(state), agent: named }
      await typing.setByAgent(request, callerOf(context).workspaceId)
      return {}
    },

    async setVisitorTyping({ credentials, state }) {
      await typing.setByVisitor(fromCredentials(credentials), fromTypingState(state))
      return {}
    },

    updateMessageState: (request, context) => states.update(request, callerOf(context).workspaceId),

    async assignAgent({ conversationId, agent }, context) {
      const named = fromAgent(agent) ?? { displayName: '' }
      return {
        conversation: toConversation(await assignments.assign(conversationId, named, callerOf(context).workspaceId)),
      }
    },

    async unassignAgent({ conversationId }, context) {
      return {
        conversation: toConversation(await assignments.unassign(conversationId, callerOf(context).workspaceId)),
      }
    },

    async closeConversation({ conversationId }, context) {
      return {
        conversation: toConversation(await assignments.close(conversationId, callerOf(context).workspaceId)),
      }
    },

    watchConversations: ({ workspaceId }, context) =>
      watchConversations(core, workspaceOf(context, workspaceId), context.signal),
  }
}

const statusNames = {
  [ConversationStatus.UNSPECIFIED]: undefined,
  [ConversationStatus.OPEN]: 'open',
  [ConversationStatus.CLOSED]: 'closed',
} as const

function fromTypingState(state: TypingStateMessage): TypingState {
  if (state === TypingStateMessage.STARTED) return 'started'
  if (state === TypingStateMessage.STOPPED) return 'stopped'
  throw new ServiceError(ErrorCode.VALIDATION_FAILED, { issues: [{ path: '/state', rule: 'enum' }] })
}
