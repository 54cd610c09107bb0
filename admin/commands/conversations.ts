import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { call, type Group, number, whether } from '../command.ts'
import { pageRows } from '../output.ts'
import { page, workspace } from './flags.ts'

interface ListedConversation {
  conversationId: string
  /** Absent if the visitor has sent no message. */
  sessionId?: string
  lastMessageAt?: string
  waitingSince?: string
  agent?: { displayName: string }
}

function conversationRows(answer: { conversations?: ListedConversation[]; nextPageToken?: string }) {
  const { conversations = [], nextPageToken } = answer
  const rows = conversations.map(({ conversationId, sessionId, agent, waitingSince, lastMessageAt }) => [
    conversationId,
    sessionId ?? 'visitor has not written',
    waitingSince ? `waits since ${waitingSince}` : `last message ${lastMessageAt ?? 'none'}`,
    agent ? `with ${agent.displayName}` : 'unassigned',
  ])
  return pageRows(rows, nextPageToken)
}

export const conversations: Group = {
  list: call(
    MessagingService.method.listConversations,
    {
      workspace,
      unanswered: whether('only open ones whose last message is the visitor’s, longest wait first'),
      limit: number('1 to 100; default 50'),
      page,
    },
    { rows: conversationRows },
  ),
}
