import { describe, expect, it } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import type { RunningCore } from '../context.ts'
import { eraseVisitor } from '../privacy/erasures.ts'
import { exportVisitor, visitorOfSession } from '../privacy/visitor-data.ts'
import { answer, codeOf, send, type TestVisitor, testCores } from '../test/cores.ts'
import { visitorOf } from '../test/visitor-marks.ts'
import { closeConversation, reopenConversation } from './assignments.ts'
import { findConversation } from './conversation-access.ts'
import { listConversations } from './inbox.ts'
import { listMessages, listMessagesForVisitor } from './messages.ts'
import { addNote, listNotes } from './notes.ts'

const cores = testCores({ count: 2, started: false })
const marker = 'only-for-operators'
const agent = { displayName: 'Ada' }

const add = (core: RunningCore, { conversationId }: TestVisitor, clientOperationId: string, body = marker) =>
  addNote(core, { conversationId, clientOperationId, body, agent }, undefined)

const bodiesOf = async ({ conversationId }: TestVisitor) =>
  (await listNotes(cores.other, conversationId, undefined)).map(({ body }) => body)

describe('notes', () => {
  it('are listed by both cores, and concurrent repeats of an operation add one note', async () => {
    const visitor = await cores.newVisitor()
    const added = await Promise.all([0, 1, 0, 1].map((index) => add(cores.cores[index]!, visitor, 'one', 'first')))
    await add(cores.other, visitor, 'two', 'second')
    expect(new Set(added.map(({ noteId }) => noteId)).size).toBe(1)
    expect(await bodiesOf(visitor)).toEqual(['first', 'second'])
    expect(await codeOf(add(cores.core, visitor, 'one', 'other'))).toBe('IdempotencyConflict')
  })

  it('never appear in the log, the history, the inbox or the export of the visitor', async () => {
    const visitor = await cores.newVisitor()
    const { conversationId, credentials, sessionId } = visitor
    await send(cores.core, visitor, 'hello')
    await add(cores.core, visitor, 'note')
    await answer(cores.other, visitor, 'reply')
    const seen: unknown[] = [await cores.log(conversationId)]
    for (const core of cores.cores) {
      seen.push(await listMessagesForVisitor(core, credentials, {}))
      seen.push(await listMessages(core, conversationId, {}))
      seen.push(await findConversation(core, conversationId, undefined))
      seen.push(await listConversations(core, { workspaceId: visitor.workspaceId }))
      const name = await visitorOfSession(core, sessionId, undefined)
      for await (const line of exportVisitor(core, name)) seen.push(line)
    }
    expect(JSON.stringify(seen)).toContain('hello')
    expect(JSON.stringify(seen)).not.toContain(marker)
  })

  itLong('are limited to a hundred per conversation', async () => {
    const visitor = await cores.newVisitor()
    for (let index = 0; index < 100; index += 1) await add(cores.core, visitor, `n${index}`)
    await expect(add(cores.other, visitor, 'more')).rejects.toMatchObject({ code: 'ValidationFailed' })
    await add(cores.other, visitor, 'n7')
    expect(await bodiesOf(visitor)).toHaveLength(100)
  })

  it('are removed with the conversation, and a later note is rejected', async () => {
    const visitor = await cores.newVisitor()
    await add(cores.core, visitor, 'one')
    await eraseVisitor(cores.core, await visitorOf(cores, visitor), 'desk')
    await expect(add(cores.other, visitor, 'two')).rejects.toMatchObject({ code: 'NotFound' })
    await expect(bodiesOf(visitor)).rejects.toMatchObject({ code: 'NotFound' })
  })
})

describe('the reopening of a conversation', () => {
  it('writes one event even if both cores reopen at once, and none for an open conversation', async () => {
    const visitor = await cores.newVisitor()
    const { conversationId } = visitor
    await send(cores.core, visitor, 'hello')
    await reopenConversation(cores.core, conversationId, undefined)
    for (const round of [1, 2]) {
      await closeConversation(cores.core, conversationId, undefined)
      await Promise.all(cores.cores.map((core) => reopenConversation(core, conversationId, undefined)))
      expect(await findConversation(cores.other, conversationId, undefined)).toMatchObject({ status: 'open' })
      const types = (await cores.log(conversationId)).map(({ type }) => type)
      expect(types.filter((type) => type === 'conversation.reopened')).toHaveLength(round)
    }
  })
})
