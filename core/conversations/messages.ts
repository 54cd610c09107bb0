import { LRUCache } from 'lru-cache'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'
import { hashInput } from '../idempotency/idempotency.ts'
import { newId } from '../ids.ts'
import type { EventLog } from '../log/event-log.ts'
import type { EventStore } from '../log/event-store.ts'
import type { Agent, LogEvent } from '../log/model.ts'
import { operationKeys } from '../log/operation-keys.ts'
import { repairLocale, useLineFeeds } from '../repairs.ts'
import { field, integer, messageBody, oneOf, operationId, text, url, validate } from '../rules.ts'
import { type PageContext, repairPageContext } from '../visitors/page-context.ts'
import { operationSessionOf, type Session, type SessionStore } from '../visitors/session-store.ts'
import type { VisitorAccess, VisitorCredentials } from '../visitors/visitor-access.ts'
import type { ConversationAccess } from './conversation-access.ts'
import type { Inbox } from './inbox.ts'
import { type MessageStates, withChanges } from './message-states.ts'
import type { Typing } from './typing.ts'

export interface VisitorSend {
  credentials: VisitorCredentials
  clientOperationId: string
  body: string
  contentType: string
  locale?: string
  pageContext?: PageContext
  /** Sent by the retry route, which the installation must advertise. */
  retryRoute?: boolean
}

export interface AgentSend {
  conversationId: string
  clientOperationId: string
  body: string
  /** Default: the assigned agent, if any. */
  agent?: Agent
}

export interface Sent {
  event: LogEvent
  replayed: boolean
}

export interface PageQuery {
  afterSequence?: number
  beforeSequence?: number
  limit?: number
}

/** `messages` and the stream after `lastSequence` together are complete under concurrent writes. */
export interface MessagePage {
  messages: LogEvent[]
  hasMore: boolean
  lastSequence: number
  oldestSequence: number
}

export interface MessageSettings {
  bodyMaxLength: number
  pageContextMaxBytes: number
  historyPageMax: number
  historyPageDefault: number
}

export interface Messages {
  /**
   * Sends a visitor's message. Errors: those of VisitorAccess.authorize, RouteNotAdvertised,
   * ValidationFailed, IdempotencyConflict, ServiceUnavailable.
   */
  sendAsVisitor(send: VisitorSend): Promise<Sent>
  /** Errors: NotFound, ValidationFailed, IdempotencyConflict, ServiceUnavailable. */
  sendAsAgent(send: AgentSend, workspaceId?: string): Promise<Sent>
  /**
   * The history of the visitor's conversation. Errors: those of VisitorAccess.authorize,
   * ValidationFailed.
   */
  listForVisitor(credentials: VisitorCredentials, query: PageQuery): Promise<MessagePage>
  /** Errors: NotFound, ValidationFailed. */
  list(conversationId: string, query: PageQuery, workspaceId?: string): Promise<MessagePage>
}

export interface MessagesDependencies {
  access: VisitorAccess
  sessions: Pick<SessionStore, 'markWritten' | 'setPageContext'>
  log: EventLog
  events: EventStore
  conversationAccess: ConversationAccess
  inbox: Inbox
  typing: Pick<Typing, 'endAfterMessage'>
  states: Pick<MessageStates, 'markSent'>
  settings: MessageSettings
}

const maxMarked = 50_000

/**
 * Messages between visitors and agents: appends them to the log and reads the history (contract,
 * section 3).
 */
export function createMessages({
  access,
  sessions,
  log,
  events,
  conversationAccess,
  inbox,
  typing,
  states,
  settings,
}: MessagesDependencies): Messages {
  /** Sessions that this process has marked. Cached sessions may not show the mark yet. */
  const marked = new LRUCache<string, true>({ max: maxMarked })

  /**
   * Marks an anonymous session before its first message. An identification closes the session in
   * the same document. Either it sees the mark and continues the conversation, or it comes first
   * and the message is rejected.
   */
  async function markWritten({ sessionId, identity, hasWritten }: Session) {
    if (identity || hasWritten || marked.has(sessionId)) return
    if (!(await sessions.markWritten(sessionId))) {
      await access.live(sessionId)
      throw new ServiceError(ErrorCode.SESSION_CLOSED)
    }
    marked.set(sessionId, true)
  }

  /** The author of an agent's message: the named agent, or the assigned one, which must be read. */
  async function agentOf({ conversationId, agent }: AgentSend, workspaceId: string | undefined) {
    if (!agent) return (await conversationAccess.find(conversationId, workspaceId)).assignment?.agent
    await conversationAccess.require(conversationId, workspaceId)
    return agent
  }

  /** Side effects of a message, done in the background. */
  function follow({ event, replayed }: Sent) {
    inbox.record(event)
    if (!replayed) typing.endAfterMessage(event)
  }

  /** Stores the visitor's page in the background. A lost page is reported again soon. */
  function keepPage(sessionId: string, sent: PageContext, at: Date) {
    const page = repairPageContext(sent, settings.pageContextMaxBytes)
    if (page) sessions.setPageContext(sessionId, page, at).catch(() => {})
  }

  async function pageOf(
    conversationId: string,
    { afterSequence, beforeSequence, limit = settings.historyPageDefault }: PageQuery,
  ): Promise<MessagePage> {
    validate(
      field('/limit', limit, integer(1, settings.historyPageMax)),
      afterSequence !== undefined && beforeSequence !== undefined
        ? { path: '/beforeSequence', rule: 'not' }
        : undefined,
    )
    const { messages, changes, ...ends } = await events.historyPage({
      conversationId,
      ...(afterSequence === undefined ? {} : { after: afterSequence }),
      ...(beforeSequence === undefined ? {} : { before: beforeSequence }),
      limit: limit + 1,
    })
    const page = beforeSequence === undefined ? messages.slice(0, limit) : messages.slice(-limit)
    return { messages: withChanges(page, changes), hasMore: messages.length > limit, ...ends }
  }

  return {
    async sendAsVisitor({ credentials, retryRoute, ...send }) {
      const input = { ...send, body: useLineFeeds(send.body) }
      const { session, installation } = await access.authorize(credentials)
      if (retryRoute && !installation.capabilities.messageRetryRoute)
        throw new ServiceError(ErrorCode.ROUTE_NOT_ADVERTISED)
      validate(
        field('/clientOperationId', input.clientOperationId, operationId),
        field('/body', input.body, messageBody(settings.bodyMaxLength)),
        field('/contentType', input.contentType, oneOf('text')),
      )
      await markWritten(session)
      const { sessionId, conversationId } = session
      const { clientOperationId } = input
      const locale = repairLocale(input.locale ?? '')
      const sent = await log.append({
        conversationId,
        type: 'message.accepted',
        operationKey: operationKeys.visitorMessage(operationSessionOf(session), clientOperationId),
        inputHash: hashInput(input),
        message: {
          messageId: newId('msg'),
          clientOperationId,
          sessionId,
          author: { kind: 'visitor' },
          body: input.body,
          contentType: 'text',
          ...(locale === undefined ? {} : { locale }),
          state: 'queued',
        },
      })
      follow(sent)
      if (input.pageContext && !sent.replayed) keepPage(sessionId, input.pageContext, sent.event.occurredAt)
      return sent
    },

    async sendAsAgent({ conversationId, ...send }, workspaceId) {
      const input = { ...send, body: useLineFeeds(send.body) }
      const named = await agentOf({ conversationId, ...input }, workspaceId)
      validate(
        field('/clientOperationId', input.clientOperationId, operationId),
        field('/body', input.body, messageBody(settings.bodyMaxLength)),
        field('/agent/displayName', input.agent?.displayName, text(0, 128)),
        field('/agent/avatarUrl', input.agent?.avatarUrl, url('https')),
      )
      const { displayName = '', avatarUrl } = named ?? {}
      const sent = await log.append({
        conversationId,
        type: 'message.received',
        operationKey: operationKeys.agentMessage(input.clientOperationId),
        inputHash: hashInput(input),
        message: {
          messageId: newId('msg'),
          author: {
            kind: 'agent',
            ...(displayName === '' ? {} : { displayName }),
            ...(avatarUrl === undefined ? {} : { avatarUrl }),
          },
          body: input.body,
          contentType: 'text',
          state: 'sent',
        },
      })
      follow(sent)
      return sent
    },

    async listForVisitor(credentials, query) {
      const { session } = await access.authorize(credentials)
      return pageOf(session.conversationId, query)
    },

    async list(conversationId, query, workspaceId) {
      await conversationAccess.find(conversationId, workspaceId)
      const page = await pageOf(conversationId, query)
      states.markSent(page.messages)
      return page
    },
  }
}
