import type { Core } from '../core.ts'
import { findConversations } from '../log/conversation-store.ts'
import { eventsOf } from '../log/event-store.ts'
import { insertOnce } from '../mongodb/insert-each.ts'
import type { Session } from '../sessions/model.ts'
import { openErasures, sessionStoreOf, toSession } from '../sessions/session-store.ts'

/** A verified visitor on a connection. The id is a keyed hash of the connection and the host's user id. */
export interface SubjectDocument {
  _id: string
  workspaceId: string
  connectionId: string
  /** The conversation that the visitor's sessions continue. */
  conversationId: string
  /** The visitor's erasures that were unfinished when the visitor got this conversation. */
  afterErasures?: string[]
}

/**
 * Decides which conversation `session` continues after it has replaced `predecessor`: an anonymous
 * conversation with a message, or else the verified visitor's open conversation, if there is one. Returns
 * the updated session. A repeated call returns the first decision.
 */
export async function decideConversation(core: Core, session: Session, predecessor: Session): Promise<Session> {
  const { sessionId, identity, provisionalFor } = session
  if (!identity || provisionalFor === undefined) return session
  // True if the predecessor was anonymous: the write that closed it set the same identity.
  const isJoined = predecessor.identity?.operation === identity.operation
  const own = isJoined ? predecessor.conversationId : session.conversationId
  const replaces = isJoined && (predecessor.hasWritten || (await eventsOf(core).firstMessage(own)) !== undefined)
  const conversationId = await choose(core, session, identity.subjectId, own, replaces)
  // A later call changes nothing.
  await core.db.sessions.updateOne(
    { _id: sessionId, provisionalFor: { $exists: true } },
    { $set: { conversationId }, $unset: { provisionalFor: '' } },
  )
  const [updated = session] = await sessionStoreOf(core).find([sessionId])
  return updated
}

/** Decides the conversation of sessions whose process died after it had closed their predecessors. */
export async function reconcileSubject(core: Core, subjectId: string) {
  const undecided = { 'identity.subjectId': subjectId, provisionalFor: { $exists: true }, status: 'active' as const }
  for (const session of (await core.db.sessions.find(undecided).toArray()).map(toSession)) {
    const [predecessor] = await sessionStoreOf(core).find([session.provisionalFor!])
    if (predecessor?.successor?.sessionId === session.sessionId) await decideConversation(core, session, predecessor)
  }
}

async function isOpen(core: Core, conversationId: string) {
  const [conversation] = await findConversations(core, [conversationId])
  return conversation !== undefined && conversation.status !== 'closed'
}

/**
 * Returns the conversation that the verified visitor's next session continues: another open one that the
 * visitor already has, unless `replaces` is set, or else this one.
 */
async function choose(core: Core, session: Session, subjectId: string, conversationId: string, replaces = false) {
  const { workspaceId, connectionId } = session
  for (;;) {
    const current = await conversationOf(core, subjectId)
    if (current !== undefined && (current === conversationId || (!replaces && (await isOpen(core, current)))))
      return current
    if (await setConversation(core, { _id: subjectId, workspaceId, connectionId, conversationId }, current))
      return conversationId
  }
}

/** Omits a conversation that an unfinished erasure removes. */
async function conversationOf(core: Core, subjectId: string): Promise<string | undefined> {
  // Read the erasures before the conversation. A conversation that is set after an erasure
  // began stores the id of that erasure.
  const open = await openErasures(core, [subjectId])
  const found = await core.db.subjects.findOne({ _id: subjectId })
  if (!found) return undefined
  const { conversationId, afterErasures = [] } = found
  if (open.every((erasureId) => afterErasures.includes(erasureId))) return conversationId
  await core.db.subjects.deleteOne({ _id: subjectId, conversationId })
  return conversationOf(core, subjectId)
}

/** Returns false and changes nothing if another conversation than `from` is stored. */
async function setConversation(core: Core, { _id, ...rest }: SubjectDocument, from: string | undefined) {
  const { subjects } = core.db
  const stored = { ...rest, afterErasures: await openErasures(core, [_id]) }
  if (from === undefined) return insertOnce(subjects, { _id, ...stored })
  return (await subjects.updateOne({ _id, conversationId: from }, { $set: stored })).matchedCount === 1
}
