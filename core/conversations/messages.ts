import type { VisitorMessage } from '#proto/messaging/v1/messaging_pb.js'
import type { AllFields, ProtoFields } from '../../contract/proto-fields.ts'
import { createLruCache } from '../../platform/lru-cache.ts'
import { hashInput } from '../idempotency/idempotency.ts'
import { newId } from '../ids.ts'
import type { EventLog } from '../log/event-log.ts'
import type { EventStore } from '../log/event-store.ts'
import { type Agent, type LogEvent, type Message, operationKeys } from '../log-event.ts'
import { repairLocale } from '../repairs.ts'
import { field, integer, messageBody, oneOf, operationId, pictureUrl, text, validate } from '../rules.ts'
import {
  operationSessionOf,
  type PageContext,
  type Session,
  type Visitor,
  type VisitorCredentials,
} from '../sessions/model.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import type { VisitorAccess } from '../sessions/visitor-access.ts'
import type { Consents, Observations } from '../visitors/service.ts'
import { requireCapability } from '../workspaces/capabilities.ts'
import type { ConversationAccess } from './conversation-access.ts'
import type { Inbox } from './inbox.ts'
import type { MessageStates } from './message-states.ts'
import { type RatingState, withChanges } from './model.ts'
import type { Ratings } from './ratings.ts'
import type { Typing } from './typing.ts'

export interface VisitorSend
  extends Omit<ProtoFields<VisitorMessage>, 'credentials' | 'pageContext' | 'retryRoute' | 'correlationId'> {
  credentials: VisitorCredentials
  pageContext?: PageContext
  retryRoute?: boolean
  correlationId?: string | undefined
}

interface AgentSend {
  conversationId: string
  clientOperationId: string
  body: string
  /** The agent who wrote the message. Default: the assigned agent, if there is one. */
  agent?: Agent
  correlationId?: string | undefined
  /** Subject of the caller, who may withdraw the message. */
  sentBy?: string
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

/**
 * A page of messages. This page and the events after `lastSequence` together have every message,
 * even during concurrent writes.
 */
export interface MessagePage {
  messages: LogEvent[]
  hasMore: boolean
  lastSequence: number
  oldestSequence: number
}

export interface VisitorPage extends MessagePage {
  /** Whether the closed conversation waits for a rating or has one, after the event `lastSequence`. */
  rating?: RatingState | undefined
}

interface MessageSettings {
  bodyMaxLength: number
  historyPageMax: number
  historyPageDefault: number
}

export interface Messages {
  /**
   * Sends a visitor's message. Errors: those of VisitorAccess.authorize, RouteNotAdvertised,
   * ValidationFailed, ConsentRequired, IdempotencyConflict, ServiceUnavailable.
   */
  sendAsVisitor(send: VisitorSend): Promise<Sent>
  /**
   * Sends a message of an agent. Errors: NotFound if the conversation does not exist,
   * ValidationFailed, IdempotencyConflict, ServiceUnavailable.
   */
  sendAsAgent(send: AgentSend, workspaceId?: string): Promise<Sent>
  /** Starts the background work after a message that another module has appended. */
  follow(sent: Sent): void
  /**
   * Returns a page of the visitor's messages. Errors: those of VisitorAccess.authorize,
   * ValidationFailed.
   */
  listForVisitor(credentials: VisitorCredentials, query: PageQuery): Promise<VisitorPage>
  /**
   * Returns a page of a conversation's messages. Marks the visitor's messages as `sent`, unless
   * `peek` is true. Errors: NotFound if the conversation does not exist, ValidationFailed.
   */
  list(conversationId: string, query: PageQuery & { peek?: boolean }, workspaceId?: string): Promise<MessagePage>
}

interface MessagesDependencies {
  access: VisitorAccess
  consents: Pick<Consents, 'require'>
  observations: Pick<Observations, 'keepPage' | 'panelUsed'>
  sessions: Pick<SessionStore, 'markWritten'>
  log: EventLog
  events: EventStore
  conversationAccess: ConversationAccess
  inbox: Inbox
  typing: Pick<Typing, 'endAfterMessage'>
  states: Pick<MessageStates, 'markSent'>
  ratings: Pick<Ratings, 'stateAt'>
  settings: MessageSettings
}

const maxMarked = 50_000

/**
 * Appends messages of visitors and agents to the log, and reads the history (contract, section 3).
 */
export function createMessages({
  access,
  consents,
  observations,
  sessions,
  log,
  events,
  conversationAccess,
  inbox,
  typing,
  states,
  ratings,
  settings,
}: MessagesDependencies): Messages {
  /**
   * Ids of sessions in which this process has set `hasWritten`. Cached sessions may not have the
   * field yet.
   */
  const marked = createLruCache<true>(maxMarked)

  /**
   * Sets `hasWritten` in an anonymous session before its first message. An identification closes
   * the session by a write to the same document. If `hasWritten` is set first, the identification
   * continues the conversation. If the session is closed first, the message is rejected.
   */
  async function markWritten({ sessionId, identity, hasWritten }: Session) {
    if (identity || hasWritten || marked.has(sessionId)) return
    if (!(await sessions.markWritten(sessionId))) await access.rejectEnded(sessionId)
    marked.set(sessionId, true)
  }

  /**
   * Returns the author of an agent's message: the named agent, or else the assigned agent. The
   * assigned agent is read from the store.
   */
  async function agentOf({ conversationId, agent }: AgentSend, workspaceId: string | undefined) {
    if (!agent) return (await conversationAccess.find(conversationId, workspaceId)).assignment?.agent
    await conversationAccess.require(conversationId, workspaceId)
    return agent
  }

  /** Starts the background work after a message: updates the inbox and ends the author's typing. */
  function follow({ event, replayed }: Sent) {
    inbox.record(event)
    if (!replayed) typing.endAfterMessage(event)
  }

  /**
   * Stores in the background that the visitor uses the panel, and on which page. If the write of
   * the page fails, the previous page stays stored until the next report.
   */
  function observe({ session, installation }: Visitor, { occurredAt }: LogEvent, page: PageContext | undefined) {
    observations.panelUsed(session, 'message')
    if (page) observations.keepPage(session.sessionId, installation, page, occurredAt).catch(() => {})
  }

  async function pageOf(
    conversationId: string,
    { afterSequence, beforeSequence, limit = settings.historyPageDefault }: PageQuery,
  ): Promise<MessagePage & { closed: boolean }> {
    validate(
      field('/limit', limit, integer(1, settings.historyPageMax)),
      afterSequence !== undefined && beforeSequence !== undefined
        ? { path: '/beforeSequence', rule: 'not' }
        : undefined,
    )
    const { messages, changes, ...ends } = await events.historyPage({
      conversationId,
      after: afterSequence,
      before: beforeSequence,
      limit,
    })
    return { messages: withChanges(messages, changes), ...ends }
  }

  return {
    async sendAsVisitor({ credentials, retryRoute, correlationId, ...input }) {
      const visitor = await access.authorize(credentials)
      const { session, installation } = visitor
      if (retryRoute) requireCapability(installation, 'messageRetryRoute')
      validate(
        field('/clientOperationId', input.clientOperationId, operationId),
        field('/body', input.body, messageBody(settings.bodyMaxLength)),
        field('/contentType', input.contentType, oneOf('text')),
      )
      const { sessionId, conversationId } = session
      const { clientOperationId } = input
      const operationKey = operationKeys.visitorMessage(operationSessionOf(session), clientOperationId)
      await consents.require(
        visitor,
        async () => (await events.findOperations([{ conversationId, operationKey }])).length > 0,
      )
      await markWritten(session)
      const locale = repairLocale(input.locale ?? '')
      const sent = await log.append({
        conversationId,
        type: 'message.accepted',
        operationKey,
        inputHash: hashInput(input),
        message: {
          messageId: newId('msg'),
          clientOperationId,
          sessionId,
          author: { kind: 'visitor' },
          body: input.body,
          contentType: 'text',
          locale,
          redactedAt: undefined,
          state: 'queued',
          quickReplies: undefined,
          correlationId,
        } satisfies AllFields<Message>,
      })
      follow(sent)
      if (!sent.replayed) observe(visitor, sent.event, input.pageContext)
      return sent
    },

    async sendAsAgent({ conversationId, correlationId, sentBy, ...input }, workspaceId) {
      const named = await agentOf({ conversationId, ...input }, workspaceId)
      validate(
        field('/clientOperationId', input.clientOperationId, operationId),
        field('/body', input.body, messageBody(settings.bodyMaxLength)),
        field('/agent/displayName', input.agent?.displayName, text(0, 128)),
        field('/agent/avatarUrl', input.agent?.avatarUrl, pictureUrl),
      )
      const { displayName = '', avatarUrl } = named ?? {}
      const sent = await log.append({
        conversationId,
        type: 'message.received',
        operationKey: operationKeys.agentMessage(input.clientOperationId),
        inputHash: hashInput(input),
        sentBy,
        message: {
          messageId: newId('msg'),
          author: {
            kind: 'agent',
            displayName: displayName || undefined,
            avatarUrl,
          },
          body: input.body,
          contentType: 'text',
          state: 'sent',
          correlationId,
        },
      })
      follow(sent)
      return sent
    },

    follow,

    async listForVisitor(credentials, query) {
      const { session } = await access.authorize(credentials)
      const { closed, ...page } = await pageOf(session.conversationId, query)
      return { ...page, rating: closed ? await ratings.stateAt(session.conversationId, page.lastSequence) : undefined }
    },

    async list(conversationId, { peek = false, ...query }, workspaceId) {
      await conversationAccess.find(conversationId, workspaceId)
      const { closed: _, ...page } = await pageOf(conversationId, query)
      if (!peek) states.markSent(page.messages)
      return page
    },
  }
}
