import { findSession } from '../bans/bans.ts'
import { screenshotStoreOf } from '../commands/screenshots.ts'
import { type Core, dateOf } from '../core.ts'
import type { Scope } from '../errors.ts'
import { field, text, validate } from '../rules.ts'
import { subjectIdOn } from '../sessions/visitor-ids.ts'
import { findWorkspace, listConnections } from '../workspaces/workspaces.ts'
import type { VisitorName, VisitorTraces } from './model.ts'
import { findTraces } from './visitor-traces.ts'

/** Errors: `NotFound` for an unknown session or one of another workspace. */
export async function visitorOfSession(core: Core, sessionId: string, scope: Scope): Promise<VisitorName> {
  const { workspaceId, visitorId, identity } = await findSession(core, sessionId, scope)
  if (identity) return { workspaceId, browserIds: [], subjectIds: [identity.subjectId] }
  return { workspaceId, browserIds: [visitorId], subjectIds: [] }
}

/**
 * Returns the verified visitor with this user id on all connections, even without stored data. Errors:
 * `NotFound` for the workspace, `ValidationFailed`.
 */
export async function visitorOfSubject(core: Core, workspaceId: string, externalSubject: string): Promise<VisitorName> {
  await findWorkspace(core, workspaceId)
  validate(field('/visitor/subject/externalSubject', externalSubject, text(1, 256)))
  const connections = await listConnections(core, workspaceId)
  const ids = connections.map(({ connectionId }) => subjectIdOn(core, connectionId, externalSubject))
  return { workspaceId, browserIds: [], subjectIds: await Promise.all(ids) }
}

/** Yields all data of a visitor as JSON, one object per line. Screenshots are in base64. */
export async function* exportVisitor(core: Core, visitor: VisitorName): AsyncIterable<string> {
  const traces = await findTraces(core, visitor, { until: dateOf(core) })
  for await (const { screenshot, ...record } of recordsOf(core, traces)) {
    if (screenshot === undefined) {
      yield JSON.stringify(record)
      continue
    }
    const { fileId, ...described } = screenshot as { fileId: string }
    yield JSON.stringify({ ...record, screenshot: described })
    const chunks: Uint8Array[] = []
    for await (const chunk of screenshotStoreOf(core).read(fileId)) chunks.push(chunk)
    const data = Buffer.concat(chunks).toString('base64')
    yield JSON.stringify({ kind: 'screenshot', commandId: record.commandId, data })
  }
}

interface VisitorRecord {
  kind: 'session' | 'ban' | 'conversation' | 'event' | 'command' | 'lead' | 'delivery'
  [field: string]: unknown
}

/** What the service keeps for itself in stored data. */
const internalOf = {
  session:
    'renewal successor provisionalFor operationSessionId closedBy connectionVersion afterErasures joinedAfterErasures linkedSubjectIds reviewAt postponedUntil consents.operation',
  // Notes are internal to the workspace.
  conversation: 'notes told unseenAt reviewAt postponedUntil erasing bots.request.operationId bots.request.inputHash',
  command: 'inputHash operationId uploads screenshot.uploadKey',
  lead: 'inputHash operationKey contacts fanOut visitorIds unannounced erasing',
}

const shown = (kind: keyof typeof internalOf) => ({
  projection: Object.fromEntries(internalOf[kind].split(' ').map((field) => [field, 0])),
})

/** A command with an uploaded screenshot has its file in `screenshot`. */
async function* recordsOf(
  { db }: Core,
  { sessionIds, visitorIds, conversationIds, leadIds }: VisitorTraces,
): AsyncIterable<VisitorRecord> {
  const { sessions, visitors, networkBans, conversations, events, commands, leads, deliveries } = db
  for await (const { _id, identity, ...rest } of sessions.find({ _id: { $in: sessionIds } }, shown('session'))) {
    const { externalSubject, displayName, context = [], verifiedAt } = identity ?? {}
    const verified = { externalSubject, displayName, verifiedAt, context: Object.fromEntries(context) }
    yield { kind: 'session', sessionId: _id, ...rest, identity: identity && verified }
  }
  for await (const { _id, ...ban } of visitors.find({ _id: { $in: visitorIds }, bannedAt: { $exists: true } })) {
    yield { kind: 'ban', visitorId: _id, ...ban }
  }
  for await (const { network, bannedAt, endsAt } of networkBans.find({ visitorIds: { $in: visitorIds } })) {
    yield { kind: 'ban', network, bannedAt, endsAt }
  }
  for await (const { _id, ...rest } of conversations.find({ _id: { $in: conversationIds } }, shown('conversation'))) {
    yield { kind: 'conversation', conversationId: _id, ...rest }
  }
  for (const conversationId of conversationIds) {
    for await (const event of events.find({ conversationId }).sort({ sequence: 1 })) {
      const { sequence, type, occurredAt, sessionId, message, currentState, data, growth } = event
      const content = { sessionId, message, currentState, data, answer: growth?.state }
      yield { kind: 'event', conversationId, sequence, type, occurredAt, ...content }
    }
  }
  for await (const { _id, ...rest } of commands.find({ sessionId: { $in: sessionIds } }, shown('command'))) {
    yield { ...rest, kind: 'command', commandId: _id, command: rest.kind }
  }
  for await (const { _id, ...rest } of leads.find({ _id: { $in: leadIds } }, shown('lead'))) {
    yield { kind: 'lead', leadId: _id, ...rest }
  }
  const theirs = { $or: [{ leadId: { $in: leadIds } }, { conversationId: { $in: conversationIds } }] }
  for await (const delivery of deliveries.find(theirs, { projection: { body: 0, 'attempts.outcome.claimId': 0 } })) {
    const { _id, eventType, leadId, conversationId, subscriptionId, status, attempts, createdAt } = delivery
    const about = { eventType, leadId, conversationId }
    yield { kind: 'delivery', deliveryId: _id, ...about, subscriptionId, status, attempts, createdAt }
  }
}
