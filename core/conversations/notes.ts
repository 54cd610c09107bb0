import { type Core, dateOf } from '../core.ts'
import { invalid, type Scope, ServiceError } from '../errors.ts'
import { hashInput } from '../idempotency/idempotency.ts'
import { newId } from '../ids.ts'
import type { Conversation, Note } from '../log/conversation-model.ts'
import type { Agent } from '../log-event.ts'
import { notErasing } from '../mongodb/not-erasing.ts'
import { agentIssues, field, messageBody, operationId, validate } from '../rules.ts'
import { searchIndexOf } from '../search/search-index.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import { findConversation } from './conversation-access.ts'

interface NewNote {
  conversationId: string
  clientOperationId: string
  body: string
  agent: Agent
}

const maxNotes = 100

/**
 * Notes are part of the conversation's document and not of its log, so no stream, replay or history of a
 * visitor can contain them. Calls with the same operation id add one note. Errors: NotFound,
 * ValidationFailed (also for a conversation with 100 notes), IdempotencyConflict.
 */
export async function addNote(core: Core, note: NewNote, scope: Scope): Promise<Note> {
  const conversation = await findConversation(core, note.conversationId, scope)
  validate(
    field('/clientOperationId', note.clientOperationId, operationId),
    field('/body', note.body, messageBody(core.config.MESSAGE_BODY_MAX_LENGTH)),
    ...agentIssues(note.agent),
  )
  const stored = await writeNote(core, note, conversation)
  if (!stored) throw invalid('/conversationId', 'maxItems')
  return stored
}

/** Adds a note of a bot, unless the conversation has 100 notes. Errors: NotFound, IdempotencyConflict. */
export async function addNoteOfBot(core: Core, note: NewNote, scope: Scope) {
  const conversation = await findConversation(core, note.conversationId, scope)
  // The space keeps the id apart from the ids that operators choose.
  await writeNote(core, { ...note, clientOperationId: `bot ${note.clientOperationId}` }, conversation)
}

/** Returns the notes, oldest first. Errors: NotFound. */
export async function listNotes(core: Core, conversationId: string, scope: Scope): Promise<Note[]> {
  await findConversation(core, conversationId, scope)
  return notesOf(core, conversationId)
}

export async function notesOf({ db }: Core, conversationId: string): Promise<Note[]> {
  const found = await db.conversations.findOne({ _id: conversationId, ...notErasing }, { projection: { notes: 1 } })
  return found?.notes ?? []
}

/** Returns undefined if the conversation has no room for the note. */
async function writeNote(
  core: Core,
  { conversationId, clientOperationId: operationId, body, agent: author }: NewNote,
  { workspaceId }: Conversation,
) {
  const inputHash = hashInput({ text: body, agent: author })
  const note = { noteId: newId('note'), operationId, inputHash, author, body, createdAt: dateOf(core) }
  const { modifiedCount } = await core.db.conversations.updateOne(
    {
      _id: conversationId,
      ...notErasing,
      'notes.operationId': { $ne: operationId },
      [`notes.${maxNotes - 1}`]: { $exists: false },
    },
    { $push: { notes: note } },
  )
  const stored = (await notesOf(core, conversationId)).find((each) => each.operationId === operationId)
  if (!stored) {
    // The conversation was removed meanwhile, or it has no room for another note.
    await findConversation(core, conversationId, workspaceId)
    return undefined
  }
  if (stored.inputHash !== inputHash) throw new ServiceError('IdempotencyConflict')
  if (modifiedCount === 1) {
    await wakeupsOf(core).hint(conversationId)
    const source = { kind: 'note' as const, conversationId, operationId }
    await searchIndexOf(core).add({ source, workspaceId, at: stored.createdAt, texts: [body] })
  }
  return stored
}
