import type { ConversationStore } from '../conversations/conversation-store.ts'
import type { IdsKey } from '../keys/ids-key.ts'
import { keyedHash } from '../keys/keyring.ts'
import type { EventStore } from '../log/event-store.ts'
import type { Session, SessionStore } from './session-store.ts'
import type { SubjectStore } from './subject-store.ts'

export interface Subjects {
  /** Id of a visitor on a connection: a keyed hash of the host's user id. */
  idOf(connectionId: string, externalSubject: string): Promise<string>
  /**
   * Decides the conversation of a session that replaced `predecessor`, and returns the updated
   * session. An anonymous conversation with a message becomes the subject's. Otherwise the session
   * gets the subject's open conversation, if there is one. A repeat returns the first decision.
   */
  decideConversation(session: Session, predecessor: Session): Promise<Session>
  /**
   * Decides for sessions whose process died after it closed the predecessor, so that the subject
   * keeps those messages.
   */
  reconcile(subjectId: string): Promise<void>
  /** Makes the subject's next identification begin a new conversation. */
  forgetConversation(subjectId: string): Promise<void>
}

/**
 * Verified visitors and the open conversation that their next session continues (contract, section
 * 3).
 */
export function createSubjects(dependencies: {
  store: SubjectStore
  sessions: Pick<SessionStore, 'find' | 'findProvisional' | 'setConversation'>
  conversations: Pick<ConversationStore, 'find'>
  events: Pick<EventStore, 'firstMessage'>
  idsKey: IdsKey
}): Subjects {
  const { store, sessions, conversations, events, idsKey } = dependencies

  async function isOpen(conversationId: string): Promise<boolean> {
    const [conversation] = await conversations.find([conversationId])
    return conversation !== undefined && conversation.status !== 'closed'
  }

  /**
   * Makes a conversation the subject's unless another one is open; `replaces` overrides an open
   * one. Returns the subject's conversation.
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
    // The write that closed an anonymous predecessor set the same identity.
    const isJoined = predecessor.identity?.operation === identity.operation
    const own = isJoined ? predecessor.conversationId : session.conversationId
    const replaces = isJoined && (predecessor.hasWritten || (await events.firstMessage(own)) !== undefined)
    await sessions.setConversation(sessionId, await choose(session, identity.subjectId, own, { replaces }))
    const [updated = session] = await sessions.find([sessionId])
    return updated
  }

  return {
    decideConversation,

    async idOf(connectionId, externalSubject) {
      return `sub_${keyedHash(await idsKey(), 'subject', connectionId, externalSubject)
        .toString('hex')
        .slice(0, 32)}`
    },

    async reconcile(subjectId) {
      for (const session of await sessions.findProvisional(subjectId)) {
        const [predecessor] = await sessions.find([session.provisionalFor!])
        if (predecessor?.successor?.sessionId === session.sessionId) await decideConversation(session, predecessor)
      }
    },

    forgetConversation: (subjectId) => store.remove(subjectId),
  }
}
