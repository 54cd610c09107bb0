import type { Core } from '../core.ts'
import { eventsOf } from '../log/event-store.ts'
import type { Session } from '../sessions/model.ts'
import { conversationRecordsOf, sessionStoreOf } from '../sessions/session-store.ts'
import { findSubject, setSubjectConversation } from './identity-store.ts'

/**
 * Decides which conversation `session` continues after it has replaced `predecessor`. Returns the
 * updated session. An anonymous conversation with a message becomes the verified visitor's
 * conversation. Otherwise the session gets the verified visitor's open conversation, if there is
 * one. A repeated call returns the first decision.
 */
export async function decideConversation(core: Core, session: Session, predecessor: Session): Promise<Session> {
  const { sessionId, identity, provisionalFor } = session
  if (!identity || provisionalFor === undefined) return session
  // True if the predecessor was anonymous. In this case, the write that closed the predecessor
  // set the same identity.
  const isJoined = predecessor.identity?.operation === identity.operation
  const own = isJoined ? predecessor.conversationId : session.conversationId
  const replaces = isJoined && (predecessor.hasWritten || (await eventsOf(core).firstMessage(own)) !== undefined)
  await sessionStoreOf(core).setConversation(
    sessionId,
    await choose(core, session, identity.subjectId, own, { replaces }),
  )
  const [updated = session] = await sessionStoreOf(core).find([sessionId])
  return updated
}

/**
 * Decides the conversations of sessions whose process died after it closed the predecessor.
 * Otherwise the visitor would lose the messages of those conversations.
 */
export async function reconcileSubject(core: Core, subjectId: string) {
  for (const session of await sessionStoreOf(core).findProvisional(subjectId)) {
    const [predecessor] = await sessionStoreOf(core).find([session.provisionalFor!])
    if (predecessor?.successor?.sessionId === session.sessionId) await decideConversation(core, session, predecessor)
  }
}

async function isOpen(core: Core, conversationId: string) {
  const [conversation] = await conversationRecordsOf(core).findConversations(core, [conversationId])
  return conversation !== undefined && conversation.status !== 'closed'
}

/**
 * Sets the conversation that the verified visitor's next session continues. Keeps another open
 * conversation that the visitor already has, unless `replaces` is set. Returns the conversation
 * that the next session continues.
 */
async function choose(core: Core, session: Session, subjectId: string, conversationId: string, { replaces = false }) {
  const { workspaceId, connectionId } = session
  for (;;) {
    const current = (await findSubject(core, subjectId))?.conversationId
    if (current !== undefined && (current === conversationId || (!replaces && (await isOpen(core, current)))))
      return current
    if (await setSubjectConversation(core, { subjectId, workspaceId, connectionId, conversationId }, current)) {
      return conversationId
    }
  }
}
