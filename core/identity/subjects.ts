import type { EventStore } from '../log/event-store.ts'
import type { ConversationRecords, Session } from '../sessions/model.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import type { VisitorIdentifier } from '../sessions/visitor-ids.ts'
import type { SubjectStore } from './identity-store.ts'

export interface Subjects {
  /** Returns the id of a visitor on a connection: a keyed hash of the host's user id. */
  idOf(connectionId: string, externalSubject: string): Promise<string>
  /**
   * Decides which conversation `session` continues after it has replaced `predecessor`. Returns the
   * updated session. An anonymous conversation with a message becomes the verified visitor's
   * conversation. Otherwise the session gets the verified visitor's open conversation, if there is
   * one. A repeated call returns the first decision.
   */
  decideConversation(session: Session, predecessor: Session): Promise<Session>
  /**
   * Decides the conversations of sessions whose process died after it closed the predecessor.
   * Otherwise the visitor would lose the messages of those conversations.
   */
  reconcile(subjectId: string): Promise<void>
  /** Makes the visitor's next identification begin a new conversation. */
  forgetConversation(subjectId: string): Promise<void>
}

/**
 * Manages verified visitors and the conversation that their next session continues (contract,
 * section 3).
 */
export function createSubjects(dependencies: {
  store: SubjectStore
  sessions: Pick<SessionStore, 'find' | 'findProvisional' | 'setConversation'>
  conversations: Pick<ConversationRecords, 'find'>
  events: Pick<EventStore, 'firstMessage'>
  identifier: Pick<VisitorIdentifier, 'subjectOn'>
}): Subjects {
  const { store, sessions, conversations, events, identifier } = dependencies

  async function isOpen(conversationId: string): Promise<boolean> {
    const [conversation] = await conversations.find([conversationId])
    return conversation !== undefined && conversation.status !== 'closed'
  }

  /**
   * Sets the conversation that the verified visitor's next session continues. Keeps another open
   * conversation that the visitor already has, unless `replaces` is set. Returns the conversation
   * that the next session continues.
   */
  async function choose(session: Session, subjectId: string, conversationId: string, { replaces = false }) {
    const { workspaceId, connectionId } = session
    for (;;) {
      const current = (await store.find(subjectId))?.conversationId
      if (current !== undefined && (current === conversationId || (!replaces && (await isOpen(current)))))
        return current
      if (await store.setConversation({ subjectId, workspaceId, connectionId, conversationId }, current)) {
        return conversationId
      }
    }
  }

  async function decideConversation(session: Session, predecessor: Session): Promise<Session> {
    const { sessionId, identity, provisionalFor } = session
    if (!identity || provisionalFor === undefined) return session
    // True if the predecessor was anonymous. In this case, the write that closed the predecessor
    // set the same identity.
    const isJoined = predecessor.identity?.operation === identity.operation
    const own = isJoined ? predecessor.conversationId : session.conversationId
    const replaces = isJoined && (predecessor.hasWritten || (await events.firstMessage(own)) !== undefined)
    await sessions.setConversation(sessionId, await choose(session, identity.subjectId, own, { replaces }))
    const [updated = session] = await sessions.find([sessionId])
    return updated
  }

  return {
    decideConversation,

    idOf: identifier.subjectOn,

    async reconcile(subjectId) {
      for (const session of await sessions.findProvisional(subjectId)) {
        const [predecessor] = await sessions.find([session.provisionalFor!])
        if (predecessor?.successor?.sessionId === session.sessionId) await decideConversation(session, predecessor)
      }
    },

    forgetConversation: (subjectId) => store.remove(subjectId),
  }
}
