import { describe, expect, it } from 'vitest'
import { testCores } from '../test/cores.ts'
import { site } from '../test/visitor-credentials.ts'
import { sendAsAgent, sendAsVisitor } from './messages.ts'

const cores = testCores({ started: false })

/** Creates a conversation and returns its two send functions: for the visitor and for the agent. */
async function newSenders() {
  const { accessGrant, conversationId } = await cores.newSession()
  const { core } = cores
  const credentials = { accessGrant, origin: site }
  return [
    (clientOperationId: string, body: string, locale?: string) =>
      sendAsVisitor(core, {
        credentials,
        clientOperationId,
        body,
        contentType: 'text',
        ...(locale === undefined ? {} : { locale }),
      }),
    (clientOperationId: string, body: string) => sendAsAgent(core, { conversationId, clientOperationId, body }),
  ]
}

describe('a message body from the visitor or the agent', () => {
  it.each([
    ['4,000 emoji', '😀'.repeat(4000), '😀'.repeat(4000)],
    ['3,999 line breaks and a letter', `${'\n'.repeat(3999)}x`, `${'\n'.repeat(3999)}x`],
    ['a tab', 'a\tb', 'a\tb'],
  ])('is accepted with %s', async (_, body, kept) => {
    for (const send of await newSenders()) {
      const { event } = await send('op', body)
      expect(event.message?.body).toBe(kept)
    }
  })

  it.each([
    ['4,001 emoji', '😀'.repeat(4001), 'maxLength'],
    ['4,001 letters', 'x'.repeat(4001), 'maxLength'],
    ['nothing', '', 'minLength'],
    ['line breaks only', '\n\n', 'pattern'],
    ['a NUL', 'a\0', 'pattern'],
    ['a C1 control character', 'a\u0085', 'pattern'],
    ['half an emoji', 'a\ud83d', 'pattern'],
  ])('is rejected with %s', async (_, body, rule) => {
    for (const send of await newSenders()) {
      await expect(send('op', body)).rejects.toMatchObject({
        code: 'ValidationFailed',
        issues: [{ path: '/body', rule }],
      })
    }
  })
})

it.each([
  ['de_DE', 'de-DE'],
  ['not a locale', undefined],
])('a message with the locale %s is stored with the locale %s', async (locale, kept) => {
  const [send] = await newSenders()
  expect((await send!('op', 'Hello', locale)).event.message?.locale).toBe(kept)
  await expect(send!('op', 'Hello', 'de-DE')).rejects.toMatchObject({ code: 'IdempotencyConflict' })
})
