import { toJson } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { type Message, MessageSchema } from '#proto/messaging/v1/messaging_pb.js'
import { MessageAnswer, SendMessageBody } from '../../gateway/schemas/messages.ts'
import { startLocalStack } from '../support/local-stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'

const database = testDatabase()

/** Every field of a visitor's message, with a value that differs from its default. */
const sent = {
  clientOperationId: 'every-field',
  body: 'Hello',
  contentType: 'text',
  locale: 'de-AT',
  pageContext: { url: 'https://shop.example/' },
}

/** Fields of the request that are stored elsewhere. */
const notInMessage = ['pageContext']

/** Fields of withdrawn messages, and of bots' messages. */
const absent = ['redactedAt', 'quickReplies', 'growing', 'ended']

it('every field of a visitor’s message is the same in history, stream, console and export', async () => {
  expect(Object.keys(sent).sort()).toEqual(Object.keys(SendMessageBody.properties).sort())
  const stack = await startLocalStack({ database, env: { RATE_LIMIT_FACTOR: '1000' } })
  const visitor = await stack.newVisitor()
  const stream = await visitor.openStream({ after: 0 })
  const headers = { 'Idempotency-Key': sent.clientOperationId }
  expect(await visitor.call('POST', '/messages', { body: sent, headers })).toMatchObject({ status: 202 })

  const [inHistory] = await visitor.history()
  const fields = Object.keys(MessageAnswer.properties).filter((field) => !absent.includes(field))
  expect(Object.keys(inHistory).sort()).toEqual(fields.sort())
  for (const [field, value] of Object.entries(sent))
    if (!notInMessage.includes(field)) expect([field, inHistory[field]]).toEqual([field, value])

  const streamed = () => stream.events.find(({ type }) => type === 'message.accepted')?.data.message
  await until('the event', () => streamed() !== undefined)
  expect(streamed()).toEqual(inHistory)

  const { messaging, privacy } = stack.operator()
  const { conversationId, sessionId } = visitor.session
  const { messages } = await messaging.listMessages({ conversationId })
  // Only callers of the core get the correlation id.
  const { correlationId, ...shown } = toJson(MessageSchema, messages[0] as Message) as Record<string, unknown>
  expect(correlationId).toMatch(/^[\w.-]+$/)
  expect(shown).toEqual(inHistory)

  const lines: string[] = []
  const exported = privacy.exportVisitor({ visitor: { by: { case: 'sessionId', value: sessionId } } })
  for await (const { line } of exported) lines.push(line)
  const event = lines.map((line) => JSON.parse(line)).find(({ type }) => type === 'message.accepted')
  const { conversationId: _, sequence: __, createdAt: ___, ...stored } = inHistory
  expect(event.message).toEqual({ ...stored, correlationId })
})
