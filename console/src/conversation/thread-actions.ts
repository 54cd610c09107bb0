import { type Conversation, type Message, TypingState } from '#proto/messaging/v1/messaging_pb.js'
import type { Api } from '../api.ts'
import type { ShownAgent } from '../session.ts'

const typingRepeatMs = 5000

interface ThreadActionsDeps {
  messaging: Api['messaging']
  conversationId: string
  /** Returns the name and picture of the signed-in operator, as visitors see them. */
  agent: () => ShownAgent
  onMessage: (message: Message) => void
  onConversation: (conversation: Conversation) => void
  onNoteAdded: () => Promise<void>
  now: () => number
}

/** What an operator does in a conversation, apart from replies. Rejects with the errors of the calls. */
export function createThreadActions(deps: ThreadActionsDeps) {
  const { messaging, conversationId, agent, onMessage, onConversation, onNoteAdded, now } = deps
  let typingSentAt = 0
  let typingSent = false

  async function applyResponse(call: Promise<{ conversation?: Conversation }>) {
    const { conversation } = await call
    if (conversation) onConversation(conversation)
  }

  return {
    async withdraw({ sequence }: Message) {
      const { message } = await messaging.redactMessage({ conversationId, sequence, agent: agent() })
      if (message) onMessage(message)
    },

    /** Tells the visitor that the operator types or has stopped. Never rejects. */
    setTyping(types: boolean) {
      if (!types && !typingSent) return
      if (types && typingSent && now() - typingSentAt < typingRepeatMs) return
      typingSent = types
      typingSentAt = now()
      const state = types ? TypingState.STARTED : TypingState.STOPPED
      messaging.setTyping({ conversationId, state, agent: agent() }).catch(() => {})
    },

    assign: (assignee: (ShownAgent & { operatorId?: string | undefined }) | undefined) =>
      applyResponse(
        assignee === undefined
          ? messaging.unassignAgent({ conversationId })
          : messaging.assignAgent({ conversationId, agent: assignee, operatorId: assignee.operatorId }),
      ),

    close: () => applyResponse(messaging.closeConversation({ conversationId })),

    /** Asks the visitor of the closed conversation for a rating. */
    requestRating: () => applyResponse(messaging.closeConversation({ conversationId, requestRating: true })),

    stopBot: () => applyResponse(messaging.stopBot({ conversationId })),

    resumeBot: () => applyResponse(messaging.resumeBot({ conversationId })),

    addTag: (tag: string) => applyResponse(messaging.addTag({ conversationId, tag })),

    removeTag: (tag: string) => applyResponse(messaging.removeTag({ conversationId, tag })),

    reopen: () => applyResponse(messaging.reopenConversation({ conversationId })),

    /** Adds a note. A repeat with the same operation ID adds no second note. */
    async addNote(body: string, clientOperationId: string) {
      await messaging.addNote({ conversationId, clientOperationId, body, agent: agent() })
      await onNoteAdded()
    },
  }
}
