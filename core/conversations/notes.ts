import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { invalid, ServiceError } from '../errors.ts'
import { hashInput } from '../idempotency/idempotency.ts'
import { newId } from '../ids.ts'
import type { Agent } from '../log-event.ts'
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
  /**
   * Adds a note of a bot, unless the conversation has 100 notes. Calls with the same operation id add
   * one note. Errors: NotFound if the conversation does not exist, IdempotencyConflict.
   */
  addOfBot(
    note: { conversationId: string; clientOperationId: string; body: string; agent: Agent },
    workspaceId: string | undefined,
  ): Promise<void>
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

  /** Returns the stored note, or undefined if the conversation has no room for it. */
  async function write(
    note: { conversationId: string; operationId: string; text: string; agent: Agent },
    workspaceId: string | undefined,
  ): Promise<Note | undefined> {
    const { conversationId, operationId: id, text, agent } = note
    const conversation = await conversationAccess.find(conversationId, workspaceId)
    const inputHash = hashInput({ text, agent })
    const added = { noteId: newId('note'), operationId: id, inputHash, author: agent, body: text }
    const isAdded = await store.addNote(conversationId, { ...added, createdAt: new Date(now()) }, maxNotes)
    const stored = (await store.notesOf(conversationId)).find(({ operationId: each }) => each === id)
    if (!stored) {
      // The conversation was removed meanwhile, or it has no room for another note.
      await conversationAccess.find(conversationId, workspaceId)
      return undefined
    }
    if (stored.inputHash !== inputHash) throw new ServiceError(ErrorCode.IDEMPOTENCY_CONFLICT)
    if (isAdded) {
      await wakeups.hint(conversationId)
      const source = { kind: 'note' as const, conversationId, operationId: id }
      await searchIndex.add({ source, workspaceId: conversation.workspaceId, at: stored.createdAt, texts: [text] })
    }
    return stored
  }

  return {
    async add({ conversationId, clientOperationId, body, agent }, workspaceId) {
      await conversationAccess.find(conversationId, workspaceId)
      validate(
        field('/clientOperationId', clientOperationId, operationId),
        field('/body', body, messageBody(bodyMaxLength)),
        ...agentIssues(agent),
      )
      const stored = await write({ conversationId, operationId: clientOperationId, text: body, agent }, workspaceId)
      if (!stored) throw invalid('/conversationId', 'maxItems')
      return stored
    },

    async addOfBot({ conversationId, clientOperationId, body, agent }, workspaceId) {
      // The space keeps the id apart from the ids that operators choose.
      await write({ conversationId, operationId: `bot ${clientOperationId}`, text: body, agent }, workspaceId)
    },

    async list(conversationId, workspaceId) {
      await conversationAccess.find(conversationId, workspaceId)
      return store.notesOf(conversationId)
    },
  }
}
