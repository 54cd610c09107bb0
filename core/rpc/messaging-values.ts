import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import {
  type Agent as AgentMessage,
  type AnswerMailSchema,
  type ConversationBotSchema,
  type ConversationSchema,
  ConversationStatus,
  type InboxEvent,
  type InboxEventSchema,
  type Message,
  MessageSchema,
  NoteSchema,
  Presence,
  type RatingSchema,
  type SearchResultSchema,
} from '#proto/messaging/v1/messaging_pb.js'
import type { ProtoFields } from '../../contract/proto-fields.ts'
import type { MessagePage } from '../conversations/messages.ts'
import { type ConversationSummary, stateOf } from '../conversations/model.ts'
import type { SearchResult } from '../conversations/search.ts'
import type { Conversation, Note } from '../log/conversation-model.ts'
import { publicMessage } from '../log/message-model.ts'
import { type Agent, agentOperationIn, type LogEvent } from '../log-event.ts'
import type { SearchSource } from '../search/search-entry-store.ts'
import { fieldsOf, toProto } from './proto-values.ts'

export const toMessage = (event: LogEvent): Message =>
  Object.assign(toVisitorsMessage(event), { correlationId: event.message?.correlationId })

export function toVisitorsMessage(event: LogEvent): Message {
  const fields = publicMessage(event, event.message!, stateOf(event))
  const { createdAt, redactedAt } = fields
  return create(MessageSchema, {
    ...fields,
    createdAt: timestampFromDate(createdAt),
    redactedAt: redactedAt && timestampFromDate(redactedAt),
  })
}

export const toPage = ({ messages, ...page }: MessagePage, convert = toMessage) => ({
  ...page,
  messages: messages.map(convert),
})

export const presenceStates = { here: Presence.HERE, away: Presence.AWAY, gone: Presence.GONE }

export function toConversation(
  conversation: Conversation,
  { visitor, lastMessage, contact }: ConversationSummary = {},
): MessageInitShape<typeof ConversationSchema> {
  const { createdAt, lastMessageAt, lastSessionId, status, assignment, queue, rating, tags } = conversation
  const waitingSince = status === 'open' ? queue?.waitingSince : undefined
  return {
    ...conversation,
    sessionId: lastSessionId,
    createdAt: timestampFromDate(createdAt),
    lastMessageAt: lastMessageAt && timestampFromDate(lastMessageAt),
    status: status === 'closed' ? ConversationStatus.CLOSED : ConversationStatus.OPEN,
    agent: assignment?.agent,
    assignedOperatorId: assignment?.agent && assignment.operator,
    waitingSince: waitingSince && timestampFromDate(waitingSince),
    visitor,
    lastMessage: lastMessage && toMessage(lastMessage),
    contact,
    bot: toBot(conversation),
    rating: rating?.score,
    tags: tags?.names,
    mail: toMail(conversation),
  }
}

/** A mail in the state `sending` has no known outcome if the state does not end soon. */
function toMail({ mail, noMails }: Conversation): MessageInitShape<typeof AnswerMailSchema> | undefined {
  if (!mail) return undefined
  const { state, at, attempts } = mail
  const isUnknown = state === 'sending' && Date.now() - at.getTime() > 60_000
  return { state: noMails ? 'stopped' : isUnknown ? 'unknown' : state, at: timestampFromDate(at), attempts }
}

function toBot({ bots, botAuthor }: Conversation): MessageInitShape<typeof ConversationBotSchema> | undefined {
  if (!bots && !botAuthor) return undefined
  const { isStopped = false, request } = bots ?? {}
  const bot = botAuthor?.bot ?? request?.bot
  return { bot, stopped: isStopped, humanRequestedAt: request && timestampFromDate(request.at) }
}

export function toSearchResult(
  { conversation, source, at, author, snippet }: SearchResult,
  summary: ConversationSummary | undefined,
): MessageInitShape<typeof SearchResultSchema> {
  const { text, highlights } = snippet
  return {
    conversation: toConversation(conversation, summary),
    source: toSource(source),
    at: timestampFromDate(at),
    author,
    snippet: text,
    highlights,
  }
}

function toSource(source: SearchSource) {
  if (source.kind === 'message') return { case: 'messageSequence' as const, value: source.sequence }
  if (source.kind === 'lead') return { case: 'leadId' as const, value: source.leadId }
  return { case: source.kind, value: true }
}

export const toNote = (note: Note) => toProto(NoteSchema, note)

export function toInboxEvent(event: LogEvent): MessageInitShape<typeof InboxEventSchema> {
  const { sequence, type, occurredAt, message, data } = event
  const operation = message && agentOperationIn(event.operationKey)
  return {
    sequence,
    type,
    occurredAt: timestampFromDate(occurredAt),
    message: message && toMessage(event),
    author: data?.author,
    messageId: data?.messageId,
    state: data?.state,
    clientOperationId: operation,
    agent: data?.agent,
    commandId: data?.commandId ?? data?.requestId,
    url: data?.url,
    label: data?.label ?? data?.purpose,
    rating: toRating(event),
    tag: data?.tag,
    form: type === 'form.submitted' && data?.leadId ? { leadId: data.leadId } : undefined,
  } satisfies Record<keyof ProtoFields<InboxEvent>, unknown>
}

export function toRating({ data }: LogEvent): MessageInitShape<typeof RatingSchema> | undefined {
  return data?.score === undefined ? undefined : { score: data.score, comment: data.comment }
}

export const fromAgent = (message: AgentMessage | undefined): Agent | undefined => message && fieldsOf(message)
