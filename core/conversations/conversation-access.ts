import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { createBatchLoader } from '../concurrency/batch-loader.ts'
import { ServiceError } from '../errors.ts'
import type { Directory } from '../workspaces/directory.ts'
import type { Conversation, ConversationStore } from './conversation-store.ts'

export interface ConversationAccess {
  /**
   * Returns a conversation of the caller's workspace, or of any workspace if the caller is not
   * limited to one. Errors: `NotFound`.
   */
  find(conversationId: string, workspaceId: string | undefined): Promise<Conversation>
  /** Checks existence with data at most a second old. Errors: `NotFound`. */
  require(conversationId: string, workspaceId: string | undefined): Promise<void>
}

export function createConversationAccess(
  conversations: Pick<ConversationStore, 'find'>,
  directory: Pick<Directory, 'conversations'>,
): ConversationAccess {
  const load = createBatchLoader(
    async (ids) => new Map((await conversations.find(ids)).map((found) => [found.conversationId, found])),
  )

  function requireInWorkspace<C extends { workspaceId: string }>(
    conversation: C | undefined,
    workspaceId: string | undefined,
  ): C {
    if (!conversation || (workspaceId !== undefined && conversation.workspaceId !== workspaceId)) {
      throw new ServiceError(ErrorCode.NOT_FOUND)
    }
    return conversation
  }

  return {
    find: async (conversationId, workspaceId) => requireInWorkspace(await load(conversationId), workspaceId),

    async require(conversationId, workspaceId) {
      requireInWorkspace(await directory.conversations.get(conversationId), workspaceId)
    },
  }
}
