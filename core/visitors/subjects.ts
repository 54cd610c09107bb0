import type { ConversationStore } from '../conversations/conversation-store.ts'
import type { IdsKey } from '../keys/ids-key.ts'
import { keyedHash } from '../keys/keyring.ts'
import type { EventStore } from '../log/event-store.ts'
import type { Session, SessionStore } from './session-store.ts'
import type { SubjectStore } from './subject-store.ts'

export interface Subjects {
  /** What a visitor is known by on a connection: a keyed hash of the host's own id. */
  idOf(connectionId: string, externalSubject: string): Promise<string>
  /**
   * Decides the conversation of a session that took the place of `predecessor`, and returns the session as it then is. An
   * anonymous conversation with a message becomes the subject's; otherwise the session gets the subject's open
   * conversation, if there is one. A repeat returns the first decision.
   */
  settle(session: Session, predecessor: Session): Promise<Session>
  /** Settles sessions whose process died after it closed the predecessor, so that the subject has what was said there. */
  recover(subjectId: string): Promise<void>
  /** The next identification of the subject begins a new conversation. */
  forgetConversation(subjectId: string): Promise<void>
}

/** Verified visitors and the open conversation that their next session continues (contract, section 3). */
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

  /** Makes a conversation the subject's, with `replaces` even if there is an open one; returns the one it has then. */
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

  async function settle(session: Session, predecessor: Session): Promise<Session> {
    const { sessionId, identity, provisionalFor } = session
    if (!identity || provisionalFor === undefined) return session
    // The write that closed an anonymous predecessor gave it the same identity.
    const isJoined = predecessor.identity?.operation === identity.operation
    const own = isJoined ? predecessor.conversationId : session.conversationId
    const replaces = isJoined && (predecessor.hasWritten || (await events.firstMessage(own)) !== undefined)
    await sessions.setConversation(sessionId, await choose(session, identity.subjectId, own, { replaces }))
    const [settled = session] = await sessions.find([sessionId])
    return settled
  }

  return {
    settle,

    async idOf(connectionId, externalSubject) {
      return `sub_${keyedHash(await idsKey(), 'subject', connectionId, externalSubject)
        .toString('hex')
        .slice(0, 32)}`
    },

    async recover(subjectId) {
      for (const session of await sessions.findProvisional(subjectId)) {
        const [predecessor] = await sessions.find([session.provisionalFor!])
        if (predecessor?.successor?.sessionId === session.sessionId) await settle(session, predecessor)
      }
    },

    forgetConversation: (subjectId) => store.remove(subjectId),
  }
}
