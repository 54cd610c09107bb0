import { create, type MessageInitShape } from '@bufbuild/protobuf'
import {
  type Conversation,
  ConversationSchema,
  ConversationStatus,
  type InboxEventSchema,
  type Message,
  type Note,
  type SearchConversationsRequest,
} from '#proto/messaging/v1/messaging_pb.js'

export type EventInit = MessageInitShape<typeof InboxEventSchema>

export interface StoredConversation {
  conversation: Conversation
  messages: Message[]
  sequence: number
  notes: Note[]
  events: EventInit[]
}

/** Returns the conversation as the service returns it, with its last message. */
export function shown({ conversation, messages }: StoredConversation) {
  const lastMessage = messages.at(-1)
  const waiting = messages[messages.findLastIndex(({ author }) => author?.kind !== 'visitor') + 1]
  return create(ConversationSchema, {
    ...conversation,
    assignedOperatorId: operatorOf(conversation.agent),
    waitingSince: conversation.status === ConversationStatus.CLOSED ? undefined : waiting?.createdAt,
    ...(lastMessage && { lastMessage, lastMessageAt: lastMessage.createdAt, lastSequence: lastMessage.sequence }),
  })
}

/** The id of the operator with the name of an agent. Only the operator of the tests has one. */
export const operatorOf = (agent: { displayName: string } | undefined) =>
  agent?.displayName === 'Ada' ? 'ada@example.com' : undefined

/** Finds messages and names that contain the query anywhere. The service compares words instead. */
export function searchIn(
  stored: StoredConversation[],
  { query, status, assignee, limit = 20, pageToken }: SearchConversationsRequest,
) {
  const wanted = query.trim().toLowerCase()
  const all = stored.filter(({ conversation: { status: is, agent } }) => {
    if (status && is !== status) return false
    if (assignee.case === 'unassigned') return agent === undefined
    return assignee.case === undefined || operatorOf(agent) === assignee.value
  })
  const texts = all.flatMap((entry) => [
    {
      entry,
      body: `${entry.conversation.visitor?.displayName ?? ''} ${entry.conversation.visitor?.externalSubject ?? ''}`.trim(),
      author: undefined,
      at: entry.conversation.createdAt,
      source: { case: 'visitor' as const, value: true },
    },
    ...entry.messages.map(({ body, author, createdAt, sequence }) => ({
      entry,
      body,
      author,
      at: createdAt,
      source: { case: 'messageSequence' as const, value: sequence },
    })),
  ])
  const matches = texts
    .filter(({ body }) => body.toLowerCase().includes(wanted))
    .sort((one, other) => Number(other.at!.seconds - one.at!.seconds))
  const from = Number(pageToken ?? 0)
  const more = matches.length > from + limit
  return {
    results: matches.slice(from, from + limit).map(({ entry, body, ...rest }) => {
      const start = body.toLowerCase().indexOf(wanted)
      const highlights = [{ start, end: start + wanted.length }]
      return { ...rest, conversation: shown(entry), snippet: body, highlights }
    }),
    ...(more && { nextPageToken: String(from + limit) }),
  }
}
