import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'
import { hashInput } from '../idempotency/idempotency.ts'
import { newId } from '../ids.ts'
import type { Agent } from '../log-event.ts'
import { useLineFeeds } from '../repairs.ts'
import { agentIssues, field, messageBody, operationId, validate } from '../rules.ts'
import type { SearchIndex } from '../search/search-index.ts'
import type { Wakeups } from '../wakeups/wakeups.ts'
import type { ConversationAccess } from './conversation-access.ts'
import type { ConversationStore } from './conversation-store.ts'
import type { Note } from './model.ts'

export interface Notes {
  /**
   * Adds a note. Calls with the same operation id add one note. Errors: NotFound if the conversation
   * does not exist, ValidationFailed (also for a conversation with 100 notes), IdempotencyConflict.
   */
  add(
    note: { conversationId: string; clientOperationId: string; body: string; agent: Agent },
    workspaceId: string | undefined,
  ): Promise<Note>
  /** Returns the notes, oldest first. Errors: NotFound if the conversation does not exist. */
  list(conversationId: string, workspaceId: string | undefined): Promise<Note[]>
}

const maxNotes = 100

/**
 * Notes that operators write for each other. They are part of the conversation's document and not of
 * its log, so no stream, replay or history of a visitor can contain them. They are removed together
 * with the document.
 */
export function createNotes(dependencies: {
  store: Pick<ConversationStore, 'addNote' | 'notesOf'>
  conversationAccess: ConversationAccess
  wakeups: Pick<Wakeups, 'hint'>
  searchIndex: Pick<SearchIndex, 'add'>
  bodyMaxLength: number
  now: () => number
}): Notes {
  const { store, conversationAccess, wakeups, searchIndex, bodyMaxLength, now } = dependencies

  return {
    async add({ conversationId, clientOperationId, body, agent }, workspaceId) {
      const conversation = await conversationAccess.find(conversationId, workspaceId)
      const text = useLineFeeds(body)
      validate(
        field('/clientOperationId', clientOperationId, operationId),
        field('/body', text, messageBody(bodyMaxLength)),
        ...agentIssues(agent),
      )
      const inputHash = hashInput({ text, agent })
      const note = { noteId: newId('note'), operationId: clientOperationId, inputHash, author: agent, body: text }
      const isAdded = await store.addNote(conversationId, { ...note, createdAt: new Date(now()) }, maxNotes)
      const stored = (await store.notesOf(conversationId)).find(({ operationId: id }) => id === clientOperationId)
      if (!stored) {
        // The conversation was removed meanwhile, or it has no room for another note.
        await conversationAccess.find(conversationId, workspaceId)
        throw new ServiceError(ErrorCode.VALIDATION_FAILED, { issues: [{ path: '/conversationId', rule: 'maxItems' }] })
      }
      if (stored.inputHash !== inputHash) throw new ServiceError(ErrorCode.IDEMPOTENCY_CONFLICT)
      if (isAdded) {
        await wakeups.hint(conversationId)
        const source = { kind: 'note' as const, conversationId, operationId: clientOperationId }
        await searchIndex.add({ source, workspaceId: conversation.workspaceId, at: stored.createdAt, texts: [text] })
      }
      return stored
    },

    async list(conversationId, workspaceId) {
      await conversationAccess.find(conversationId, workspaceId)
      return store.notesOf(conversationId)
    },
  }
}
