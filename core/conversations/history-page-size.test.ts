import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { forAllAsync } from '../../test/support/for-all.ts'
import { itLong, runs } from '../../test/support/is-long.ts'
import type { SessionContent } from '../sessions/model.ts'
import { testCores } from '../test/cores.ts'
import { listMessages, type MessagePage, type PageQuery, sendAsAgent } from './messages.ts'

const pageMaxBytes = 262_144
const beyondNewest = 2 ** 31 - 1
const cores = testCores({ env: { MESSAGE_BODY_MAX_LENGTH: '100000' } })

const bodyLengths = fc.array(fc.constantFrom(1, 4_000, 30_000, 100_000), { minLength: 1, maxLength: 40 })

async function conversationWith(lengths: number[]): Promise<SessionContent> {
  const session = await cores.newSession()
  const { conversationId } = session
  for (const [index, length] of lengths.entries())
    await sendAsAgent(cores.core, { conversationId, clientOperationId: `m${index}`, body: '😀'.repeat(length) })
  return session
}

const sequencesOf = ({ messages }: MessagePage) => messages.map(({ sequence }) => sequence)
const bytesOf = ({ messages }: MessagePage) => Buffer.byteLength(JSON.stringify(messages.map(({ message }) => message)))

async function readAll({ conversationId }: SessionContent, limit: number, next: (page?: MessagePage) => PageQuery) {
  const pages: MessagePage[] = []
  do pages.push(await listMessages(cores.core, conversationId, { ...next(pages.at(-1)), limit }))
  while (pages.at(-1)!.hasMore)
  return pages
}

describe('history pages of large messages', () => {
  itLong('end at 256 KiB, and together have every message once', async () => {
    await forAllAsync([bodyLengths, fc.constantFrom(3, 50, 100)], runs(24, 8), async (lengths, limit) => {
      const session = await conversationWith(lengths)
      const all = lengths.map((_, index) => index + 1)
      const forwards = await readAll(session, limit, (page) => ({
        afterSequence: page ? sequencesOf(page).at(-1)! : 0,
      }))
      const backwards = await readAll(session, limit, (page) => ({
        beforeSequence: page ? sequencesOf(page)[0]! : beyondNewest,
      }))
      expect(forwards.flatMap(sequencesOf)).toEqual(all)
      expect(backwards.toReversed().flatMap(sequencesOf)).toEqual(all)
      for (const page of [...forwards, ...backwards]) {
        expect(page.messages.length).toBeGreaterThan(0)
        expect(page.messages.length).toBeLessThanOrEqual(limit)
        if (page.messages.length > 1) expect(bytesOf(page)).toBeLessThanOrEqual(pageMaxBytes)
        expect(page.oldestSequence).toBe(1)
        expect(page.lastSequence).toBe(lengths.length)
      }
    })
  })

  it('are full up to 256 KiB: the newest messages before a sequence, the oldest after one', async () => {
    const session = await conversationWith(Array.from({ length: 40 }, () => 4_000))
    const { conversationId } = session
    const newest = await listMessages(cores.core, conversationId, { beforeSequence: beyondNewest, limit: 100 })
    const oldest = await listMessages(cores.core, conversationId, { limit: 100 })
    expect(sequencesOf(newest)).toEqual(Array.from({ length: 16 }, (_, index) => 25 + index))
    expect(sequencesOf(oldest)).toEqual(Array.from({ length: 16 }, (_, index) => 1 + index))
    expect([newest.hasMore, oldest.hasMore]).toEqual([true, true])
  })
})
