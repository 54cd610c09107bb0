import { LRUCache } from 'lru-cache'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'
import { hashInput } from '../idempotency.ts'
import { newId } from '../ids.ts'
import type { EventLog } from '../log/event-log.ts'
import type { Agent, LogEvent } from '../log/log-events.ts'
import { repairLocale, useLineFeeds } from '../repairs.ts'
import { field, integer, messageBody, oneOf, operationId, text, url, validate } from '../rules.ts'
import { type PageContext, repairPageContext } from '../sessions/page-context.ts'
import type { VisitorAccess, VisitorCredentials } from '../sessions/visitor-access.ts'
import type { EventStore } from '../store/events.ts'
import type { Session, SessionStore } from '../store/sessions.ts'
import type { ConversationAccess } from './conversation-access.ts'
import type { Inbox } from './inbox.ts'
import type { MessageStates } from './message-states.ts'
import type { Typing } from './typing.ts'

export interface VisitorSend {
  credentials: VisitorCredentials
  clientOperationId: string
  body: string
  contentType: string
  locale?: string
  pageContext?: PageContext
  /** By the route that an installation must advertise. */
  retryRoute?: boolean
}

export interface AgentSend {
  conversationId: string
  clientOperationId: string
  body: string
  /** Left out: the assigned agent, if there is one. */
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
   * One visitor's message. Errors: those of VisitorAccess.authorize, RouteNotAdvertised, ValidationFailed,
   * IdempotencyConflict, ServiceUnavailable.
   */
  sendAsVisitor(send: VisitorSend): Promise<Sent>
  /** Errors: NotFound, ValidationFailed, IdempotencyConflict, ServiceUnavailable. */
  sendAsAgent(send: AgentSend, workspaceId?: string): Promise<Sent>
  /** The history of the visitor's own conversation. Errors: those of VisitorAccess.authorize, ValidationFailed. */
  listForVisitor(credentials: VisitorCredentials, query: PageQuery): Promise<MessagePage>
  /** Errors: NotFound, ValidationFailed. */
  list(conversationId: string, query: PageQuery, workspaceId?: string): Promise<MessagePage>
}

const agentPrefix = 'agent '

/** The client operation id of an agent's message; undefined for everything else. */
export function agentOperationOf({ type, operationKey }: LogEvent): string | undefined {
  if (type !== 'message.received' || !operationKey?.startsWith(agentPrefix)) return undefined
  return operationKey.slice(agentPrefix.length)
}

export interface MessagesDependencies {
  access: VisitorAccess
  sessions: Pick<SessionStore, 'markWritten' | 'setPageContext'>
  log: EventLog
  events: EventStore
  conversationAccess: ConversationAccess
  inbox: Inbox
  typing: Pick<Typing, 'endedBy'>
  states: Pick<MessageStates, 'given'>
  settings: MessageSettings
}

const maxHeld = 50_000

/** Messages between visitors and agents: sends into the log, and the history out of it (contract, section 3). */
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
  /** Sessions that have been held lately: what is cached of them may not say so yet. */
  const held = new LRUCache<string, true>({ max: maxHeld })

  /**
   * The conversation that a session writes in. Before its first message the session is held there, in the write that an
   * identification would move it with: so a message, and each repeat of it, goes to one conversation only.
   */
  async function placeOf({ sessionId, conversationId, hasWritten }: Session): Promise<string> {
    const place = `${sessionId} ${conversationId}`
    if (hasWritten || held.has(place)) return conversationId
    if (!(await sessions.markWritten(sessionId, conversationId))) return placeOf(await access.live(sessionId))
    held.set(place, true)
    return conversationId
  }

  /** Who speaks in an agent's message: the named one, or the assigned one, which must be read. */
  async function agentOf({ conversationId, agent }: AgentSend, workspaceId: string | undefined) {
    if (!agent) return (await conversationAccess.find(conversationId, workspaceId)).assignment?.agent
    await conversationAccess.require(conversationId, workspaceId)
    return agent
  }

  /** What else follows from a message. None of it is waited for. */
  function follow({ event, replayed }: Sent) {
    inbox.record(event)
    if (!replayed) typing.endedBy(event)
  }

  /** Where the visitor was when writing. The message does not wait for it, and a page that is lost is told again soon. */
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
    const [found, ends, first] = await Promise.all([
      events.messages({
        conversationId,
        ...(afterSequence === undefined ? {} : { after: afterSequence }),
        ...(beforeSequence === undefined ? {} : { before: beforeSequence }),
        limit: limit + 1,
      }),
      events.ends([conversationId], { committed: true }),
      events.firstMessage(conversationId),
    ])
    const hasMore = found.length > limit
    const messages = beforeSequence === undefined ? found.slice(0, limit) : found.slice(-limit)
    return {
      messages,
      hasMore,
      lastSequence: ends.get(conversationId)?.sequence ?? 0,
      oldestSequence: first?.sequence ?? 0,
    }
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
      const { sessionId } = session
      const conversationId = await placeOf(session)
      const { clientOperationId } = input
      const locale = repairLocale(input.locale ?? '')
      const sent = await log.append({
        conversationId,
        type: 'message.accepted',
        operationKey: `${sessionId} ${clientOperationId}`,
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
        operationKey: `${agentPrefix}${input.clientOperationId}`,
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
      states.given(page.messages)
      return page
    },
  }
}
