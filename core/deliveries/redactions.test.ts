import { inspect } from 'node:util'
import { expect, it } from 'vitest'
import { createBus } from '../bus.ts'
import type { RunningCore } from '../context.ts'
import { summarizeConversations } from '../conversations/conversation-access.ts'
import { listConversations } from '../conversations/inbox.ts'
import { reconcileMessageStates } from '../conversations/message-states.ts'
import { listMessages, listMessagesForVisitor, sendAsAgent } from '../conversations/messages.ts'
import { isRedaction } from '../conversations/model.ts'
import { searchTexts } from '../conversations/search.ts'
import { feedReaderOf } from '../feed/feed-reader.ts'
import { logOf } from '../log/event-log.ts'
import { exportVisitor, visitorOfSession } from '../privacy/visitor-data.ts'
import { toMessage } from '../rpc/messaging-values.ts'
import { searchIndexOf } from '../search/search-index.ts'
import { encodeEvent } from '../streams/model.ts'
import { recentEventsOf } from '../streams/recent-events.ts'
import { say as sayAsBot } from '../test/bots.ts'
import { bareCore } from '../test/core-with.ts'
import { answer, send, type TestVisitor, testCores } from '../test/cores.ts'
import { applyRedactions, redactMessage } from './redactions.ts'

const cores = testCores({ count: 2, started: false })
const secret = 'slipofthetongue'
const ada = { displayName: 'Ada' }

const say = async (core: RunningCore, { conversationId }: TestVisitor, body = secret) =>
  (await sendAsAgent(core, { conversationId, clientOperationId: 'slip', body, agent: ada, sentBy: 'ada-1' })).event

const withdraw = (
  core: RunningCore,
  { conversationId }: TestVisitor,
  sequence: number,
  {
    subject = 'ada-1',
    anyAuthor = false,
    workspaceId,
  }: { subject?: string; anyAuthor?: boolean; workspaceId?: string } = {},
) => redactMessage(core, { conversationId, sequence }, { workspaceId, subject, anyAuthor })

/** Everything that any reader gets of the conversation. */
async function readings({ conversationId, credentials, sessionId, workspaceId }: TestVisitor) {
  const seen: unknown[] = [
    (await cores.log(conversationId)).map((event) => encodeEvent(event as Parameters<typeof encodeEvent>[0])),
  ]
  for (const core of cores.cores) {
    seen.push(await listMessagesForVisitor(core, credentials, {}))
    seen.push(await listMessages(core, conversationId, {}))
    const { conversations } = await listConversations(core, { workspaceId })
    seen.push(await summarizeConversations(core, conversations, { contacts: false }))
    seen.push(
      await feedReaderOf(core).read(
        { workspaceId, cursor: '', types: [] },
        { waitMs: 0, signal: AbortSignal.timeout(60_000) },
      ),
    )
    for await (const line of exportVisitor(core, await visitorOfSession(core, sessionId, undefined))) seen.push(line)
  }
  return JSON.stringify(seen)
}

const find = (core: RunningCore, { workspaceId }: TestVisitor) =>
  searchTexts(core, { workspaceId, kinds: ['message'], query: secret })

it('a withdrawn message has no text for any reader, on both cores, and its words leave the search', async () => {
  const visitor = await cores.newVisitor(await cores.newSite())
  await send(cores.core, visitor, 'hello')
  const { sequence } = await say(cores.core, visitor)
  await searchIndexOf(cores.core).flush()
  expect((await find(cores.other, visitor)).results).toHaveLength(1)
  expect(await readings(visitor)).toContain(secret)

  await withdraw(cores.other, visitor, sequence)
  expect(await readings(visitor)).not.toContain(secret)
  expect((await find(cores.core, visitor)).results).toEqual([])
  expect(await cores.core.database.collections.searchEntries.findOne({ terms: secret })).toBeNull()
  const events = await cores.log(visitor.conversationId)
  const { messageId, redactedAt, body } = events.find((one) => one.sequence === sequence)!.message!
  const redaction = events.find(({ type }) => type === 'message.redacted')!
  expect({ redactedAt, body }).toEqual({ redactedAt: redaction.occurredAt, body: '' })
  expect(redaction).toMatchObject({ data: { messageId }, messageSequence: sequence })
  expect(redaction.unapplied).toBeUndefined()
})

it('the subject that sent a message is in no answer, stream and export', async () => {
  const visitor = await cores.newVisitor(await cores.newSite())
  const event = await say(cores.core, visitor)
  expect(event.sentBy).toBe('ada-1')
  const shown: unknown[] = [toMessage(event), encodeEvent(event as Parameters<typeof encodeEvent>[0])]
  for await (const line of exportVisitor(cores.core, await visitorOfSession(cores.core, visitor.sessionId, undefined)))
    shown.push(line)
  expect(inspect(shown, { depth: 10 })).not.toContain('ada-1')
})

it('a withdrawn message of a bot has no quick replies for any reader', async () => {
  const visitor = await cores.newVisitor(await cores.newSite())
  await send(cores.core, visitor, 'hello')
  const { event } = await sayAsBot(cores.core, visitor, 'one', { quickReplies: [secret] })
  expect(await readings(visitor)).toContain(secret)
  await withdraw(cores.other, visitor, event.sequence, { anyAuthor: true })
  expect(await readings(visitor)).not.toContain(secret)
})

it('concurrent and repeated withdrawals write one event, and a repeat of the send brings no text back', async () => {
  const visitor = await cores.newVisitor()
  const { sequence } = await say(cores.core, visitor)
  const withdrawn = await Promise.all([0, 1, 0, 1].map((core) => withdraw(cores.cores[core]!, visitor, sequence)))
  for (const { message } of withdrawn) expect(message).toMatchObject({ body: '', redactedAt: expect.any(Date) })
  expect((await say(cores.other, visitor)).message!.body).toBe('')
  const types = (await cores.log(visitor.conversationId)).map(({ type }) => type)
  expect(types.filter((type) => type === 'message.redacted')).toHaveLength(1)
})

it('without the scope, a caller can withdraw only messages that they sent, whatever names these have', async () => {
  const visitor = await cores.newVisitor()
  const sent = (await send(cores.core, visitor, 'mine')).event.sequence
  const unnamed = (await answer(cores.core, visitor, 'unnamed')).event.sequence
  const { sequence } = await say(cores.core, visitor)
  const refused = { code: 'PermissionDenied' }
  await expect(withdraw(cores.core, visitor, sent)).rejects.toMatchObject(refused)
  await expect(withdraw(cores.core, visitor, unnamed, { subject: '' })).rejects.toMatchObject(refused)
  await expect(withdraw(cores.core, visitor, sequence, { subject: 'Ada' })).rejects.toMatchObject(refused)
  const missing = { code: 'NotFound' }
  await expect(withdraw(cores.core, visitor, sequence, { workspaceId: 'ws_other' })).rejects.toMatchObject(missing)
  await expect(withdraw(cores.core, visitor, 99, { anyAuthor: true })).rejects.toMatchObject(missing)
  await withdraw(cores.core, visitor, sent, { subject: '', anyAuthor: true })
  await withdraw(cores.core, visitor, sequence)
  expect(
    (await listMessages(cores.core, visitor.conversationId, {})).messages.map(({ message }) => message!.body),
  ).toEqual(['', 'unnamed', ''])
})

it('if the process dies after the event, the history has no text, and another process removes it from the log', async () => {
  const visitor = await cores.newVisitor()
  const { conversationId } = visitor
  const { sequence, message } = await say(cores.core, visitor)
  await logOf(cores.core).append({
    conversationId,
    type: 'message.redacted',
    data: { messageId: message!.messageId },
    messageSequence: sequence,
    unapplied: true,
  })
  expect((await listMessages(cores.other, conversationId, {})).messages[0]!.message!.body).toBe('')
  expect(JSON.stringify(await cores.log(conversationId))).toContain(secret)
  cores.advance(20)
  await applyRedactions(cores.other, (await reconcileMessageStates(cores.other)).filter(isRedaction))
  expect(JSON.stringify(await cores.log(conversationId))).not.toContain(secret)
})

it('recent events in memory lose the text with the event of the withdrawal', () => {
  const bus = createBus()
  const recent = recentEventsOf(bareCore({ bus, now: Date.now }))
  const event = (sequence: number, more: object) =>
    bus.emit('appended', { conversationId: 'c', sequence, occurredAt: new Date(), ...more } as never)
  const author = { kind: 'agent' }
  event(1, { type: 'message.received', message: { messageId: 'm', author, body: secret, state: 'sent' } })
  expect(JSON.stringify(recent.read({ conversationId: 'c', after: 0, through: 1 }))).toContain(secret)
  event(2, { type: 'message.redacted', data: { messageId: 'm' } })
  expect(recent.read({ conversationId: 'c', after: 0, through: 2 })).toBeUndefined()
  expect(recent.read({ conversationId: 'c', after: 1, through: 2 })).toHaveLength(1)
})
