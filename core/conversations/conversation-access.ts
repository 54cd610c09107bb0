import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { createBatchLoader } from '../concurrency/batch-loader.ts'
import { ServiceError } from '../errors.ts'
import type { Conversation, ConversationStore } from '../store/conversations.ts'

export interface ConversationAccess {
  /** A conversation of the caller's workspace; of any one for a caller that may act for all. Errors: `NotFound`. */
  find(conversationId: string, workspaceId: string | undefined): Promise<Conversation>
}

export function createConversationAccess(conversations: Pick<ConversationStore, 'find'>): ConversationAccess {
  const load = createBatchLoader(
    async (ids) => new Map((await conversations.find(ids)).map((found) => [found.conversationId, found])),
  )
  return {
    async find(conversationId, workspaceId) {
      const conversation = await load(conversationId)
      if (!conversation || (workspaceId !== undefined && conversation.workspaceId !== workspaceId)) {
        throw new ServiceError(ErrorCode.NOT_FOUND)
      }
      return conversation
    },
  }
}
