import type { ListMessagesRequest, SendAgentMessageRequest, VisitorMessage } from '#proto/messaging/v1/messaging_pb.js'
import { contractLimits } from '../../contract/limits.ts'
import type { AllFields, ProtoFields } from '../../contract/proto-fields.ts'
import { createLruCache } from '../../platform/lru-cache.ts'
import { requireConsent } from '../consents/consents.ts'
import { keepPage, notePanelUse } from '../consents/observations.ts'
import { type Core, perCore } from '../core.ts'
import { hashInput } from '../idempotency/idempotency.ts'
import { newId } from '../ids.ts'
import { type Appended, logOf } from '../log/event-log.ts'
import { eventsOf, type HistoryPage } from '../log/event-store.ts'
import { type Agent, type Message, operationKeys } from '../log-event.ts'
import { repairLocale } from '../repairs.ts'
import { field, integer, issueIf, messageBody, oneOf, operationId, pictureUrl, text, validate } from '../rules.ts'
import { operationSessionOf, type PageContext, type Session, type VisitorCredentials } from '../sessions/model.ts'
import { changeLive, visitorAccessOf } from '../sessions/visitor-access.ts'
import { requireCapability } from '../workspaces/model.ts'
import { findConversation, requireConversation } from './conversation-access.ts'
import { inboxOf } from './inbox.ts'
import { sentMarksOf } from './message-states.ts'
import { type RatingState, withChanges } from './model.ts'
import { ratingStateAt } from './ratings.ts'
import { typingEndsOf } from './typing.ts'

export interface VisitorSend
  extends Omit<ProtoFields<VisitorMessage>, 'credentials' | 'pageContext' | 'retryRoute' | 'correlationId'> {
  credentials: VisitorCredentials
  pageContext?: PageContext
  retryRoute?: boolean
  correlationId?: string | undefined
}

interface AgentSend extends Omit<ProtoFields<SendAgentMessageRequest>, 'agent'> {
  /** The agent who wrote the message. Default: the assigned agent, if there is one. */
  agent?: Agent
  correlationId?: string | undefined
  /** Subject of the caller, who may withdraw the message. */
  sentBy?: string
}

export type PageQuery = Pick<ListMessagesRequest, 'afterSequence' | 'beforeSequence' | 'limit'>

/** This page and the events after `lastSequence` together have every message, even during concurrent writes. */
export type MessagePage = Omit<HistoryPage, 'changes' | 'closed'>

const historyPageDefault = 50
const maxMarked = 50_000

/**
 * Errors: those of VisitorAccess.authorize, RouteNotAdvertised, ValidationFailed, ConsentRequired,
 * IdempotencyConflict, ServiceUnavailable.
 */
export async function sendAsVisitor(
  core: Core,
  { credentials, retryRoute, correlationId, ...input }: VisitorSend,
): Promise<Appended> {
  const visitor = await visitorAccessOf(core).authorize(credentials)
  const { session, installation } = visitor
  if (retryRoute) requireCapability(installation, 'messageRetryRoute')
  validate(
    field('/clientOperationId', input.clientOperationId, operationId),
    field('/body', input.body, messageBody(core.config.MESSAGE_BODY_MAX_LENGTH)),
    field('/contentType', input.contentType, oneOf('text')),
  )
  const { sessionId, conversationId } = session
  const { clientOperationId } = input
  const operationKey = operationKeys.visitorMessage(operationSessionOf(session), clientOperationId)
  await requireConsent(
    core,
    visitor,
    async () => (await eventsOf(core).findOperations([{ conversationId, operationKey }])).length > 0,
  )
  await markWritten(core, session)
  const locale = repairLocale(input.locale ?? '')
  const sent = await logOf(core).append({
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
      ended: undefined,
      correlationId,
    } satisfies AllFields<Message>,
  })
  followMessage(core, sent)
  if (!sent.replayed) {
    notePanelUse(core, session, 'message')
    // If the write of the page fails, the previous page stays stored until the next report.
    if (input.pageContext)
      keepPage(core, sessionId, installation, input.pageContext, sent.event.occurredAt).catch(() => {})
  }
  return sent
}

/** Sessions in which this process has set `hasWritten`. Cached sessions may not have the field yet. */
const markedOf = perCore(() => createLruCache<true>(maxMarked))

/**
 * Sets `hasWritten` in an anonymous session before its first message. An identification closes
 * the session by a write to the same document. If `hasWritten` is set first, the identification
 * continues the conversation. If the session is closed first, the message is rejected.
 */
async function markWritten(core: Core, { sessionId, identity, hasWritten }: Session) {
  const marked = markedOf(core)
  if (identity || hasWritten || marked.has(sessionId)) return
  await changeLive(core, sessionId, { $set: { hasWritten: true } })
  marked.set(sessionId, true)
}

/** Starts the background work after a message: updates the inbox and ends the author's typing. */
export function followMessage(core: Core, { event, replayed }: Appended) {
  inboxOf(core).record(event)
  if (!replayed) typingEndsOf(core).add(event)
}

/** Errors: NotFound, ValidationFailed, IdempotencyConflict, ServiceUnavailable. */
export async function sendAsAgent(
  core: Core,
  { conversationId, correlationId, sentBy, ...input }: AgentSend,
  workspaceId?: string,
): Promise<Appended> {
  if (input.agent) await requireConversation(core, conversationId, workspaceId)
  const named = input.agent ?? (await findConversation(core, conversationId, workspaceId)).assignment?.agent
  validate(
    field('/clientOperationId', input.clientOperationId, operationId),
    field('/body', input.body, messageBody(core.config.MESSAGE_BODY_MAX_LENGTH)),
    field('/agent/displayName', input.agent?.displayName, text(0, 128)),
    field('/agent/avatarUrl', input.agent?.avatarUrl, pictureUrl),
  )
  const { displayName = '', avatarUrl } = named ?? {}
  const sent = await logOf(core).append({
    conversationId,
    type: 'message.received',
    operationKey: operationKeys.agentMessage(input.clientOperationId),
    inputHash: hashInput(input),
    sentBy,
    message: {
      messageId: newId('msg'),
      author: { kind: 'agent', displayName: displayName || undefined, avatarUrl },
      body: input.body,
      contentType: 'text',
      state: 'sent',
      correlationId,
    },
  })
  followMessage(core, sent)
  return sent
}

/**
 * Returns a page. `rating`: whether the closed conversation waits for a rating or has one, after the event
 * `lastSequence`. Errors: those of VisitorAccess.authorize, ValidationFailed.
 */
export async function listMessagesForVisitor(
  core: Core,
  credentials: VisitorCredentials,
  query: PageQuery,
): Promise<MessagePage & { rating?: RatingState | undefined }> {
  const { conversationId } = (await visitorAccessOf(core).authorize(credentials)).session
  const { closed, ...page } = await pageOf(core, conversationId, query)
  return { ...page, rating: closed ? await ratingStateAt(core, conversationId, page.lastSequence) : undefined }
}

/** Marks the visitor's messages as `sent`, unless `peek` is true. Errors: NotFound, ValidationFailed. */
export async function listMessages(
  core: Core,
  conversationId: string,
  { peek = false, ...query }: PageQuery & { peek?: boolean },
  workspaceId?: string,
): Promise<MessagePage> {
  await findConversation(core, conversationId, workspaceId)
  const { closed: _, ...page } = await pageOf(core, conversationId, query)
  if (!peek) sentMarksOf(core).mark(page.messages)
  return page
}

async function pageOf(
  core: Core,
  conversationId: string,
  { afterSequence: after, beforeSequence: before, limit = historyPageDefault }: PageQuery,
) {
  validate(
    field('/limit', limit, integer(1, contractLimits.historyPageMax)),
    issueIf(after !== undefined && before !== undefined, '/beforeSequence', 'not'),
  )
  const events = eventsOf(core)
  const { messages, changes, ...ends } = await events.historyPage({ conversationId, after, before, limit })
  return { messages: withChanges(messages, changes), ...ends }
}
