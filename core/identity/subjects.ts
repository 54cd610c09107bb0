import type { IdsKey } from '../keys/ids-key.ts'
import { keyedHash } from '../keys/keyring.ts'
import type { Wakeups } from '../log/wakeups.ts'
import type { VisitorAccess } from '../sessions/visitor-access.ts'
import type { Conversation, ConversationStore } from '../store/conversations.ts'
import type { EventStore } from '../store/events.ts'
import type { Session, SessionStore } from '../store/sessions.ts'
import type { Subject, SubjectStore } from '../store/subjects.ts'

export interface Subjects {
  /** What a visitor is known by on a connection: a keyed hash of the host's own id. */
  idOf(connectionId: string, externalSubject: string): Promise<string>
  /** The subject's conversation, while it is open. */
  openConversation(subjectId: string): Promise<Conversation | undefined>
  /**
   * Puts a verified session where its subject's conversation is, and resolves to the session as it then stands. Until the
   * session has written something it continues the subject's open conversation; after that it stays where it wrote. With
   * `joins`, what it wrote becomes the subject's open conversation.
   * Repeating it changes nothing. Errors: those of VisitorAccess.live.
   */
  settle(sessionId: string, options: { joins: boolean }): Promise<Session>
}

/** Verified visitors and the one conversation that all of their sessions continue (contract, section 3). */
export function createSubjects(dependencies: {
  store: SubjectStore
  sessions: Pick<SessionStore, 'move' | 'findUnwritten'>
  conversations: Pick<ConversationStore, 'find'>
  events: Pick<EventStore, 'firstMessage'>
  access: Pick<VisitorAccess, 'live'>
  idsKey: IdsKey
  wakeups: Pick<Wakeups, 'stateChanged'>
}): Subjects {
  const { store, sessions, conversations, events, access, idsKey, wakeups } = dependencies

  async function openOf(subject: Subject | undefined): Promise<Conversation | undefined> {
    if (!subject) return undefined
    const [conversation] = await conversations.find([subject.conversationId])
    return conversation?.status === 'closed' ? undefined : conversation
  }

  /** The subject's sessions that wait in a conversation without any message come along. */
  async function gather(subjectId: string, to: string) {
    const moved: string[] = []
    for (const { sessionId, conversationId } of await sessions.findUnwritten(subjectId)) {
      if (conversationId === to || (await events.firstMessage(conversationId))) continue
      if (await sessions.move(sessionId, { from: conversationId, to })) moved.push(sessionId)
    }
    if (moved.length > 0) await wakeups.stateChanged(...moved)
  }

  return {
    async idOf(connectionId, externalSubject) {
      return `sub_${keyedHash(await idsKey(), 'subject', connectionId, externalSubject)
        .toString('hex')
        .slice(0, 32)}`
    },

    openConversation: async (subjectId) => openOf(await store.find(subjectId)),

    async settle(sessionId, { joins }) {
      for (;;) {
        const session = await access.live(sessionId)
        const { conversationId, connectionId, workspaceId, identity, hasWritten = false } = session
        if (!identity) return session
        const { subjectId } = identity
        const subject = await store.find(subjectId)
        const open = await openOf(subject)
        const isThere = subject?.conversationId === conversationId
        if (!isThere && open && !hasWritten) {
          await sessions.move(sessionId, { from: conversationId, to: open.conversationId })
          continue
        }
        if (!isThere && (joins || !open)) {
          const own = { subjectId, workspaceId, connectionId, conversationId }
          if (!(await store.setConversation(own, subject?.conversationId))) continue
        }
        if (joins) await gather(subjectId, conversationId)
        return session
      }
    },
  }
}
