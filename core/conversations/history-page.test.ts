import fc, { type Scheduler } from 'fast-check'
import { describe, expect, it } from 'vitest'
import { forAllAsync } from '../../test/support/for-all.ts'
import { runs, someOf } from '../../test/support/is-long.ts'
import type { RunningCore } from '../context.ts'
import type { SessionContent } from '../sessions/model.ts'
import { testCores } from '../test/cores.ts'
import { inTurn } from '../test/scheduled-database.ts'
import { updateMessageStates } from './message-states.ts'
import { listMessages, type MessagePage, type PageQuery, sendAsAgent } from './messages.ts'
import { stateOf } from './model.ts'

const fewRuns = runs(60)
const beyondNewest = 2 ** 31 - 1
const pageSize = fc.constantFrom(2, 50)
const cores = testCores()

const sequencesOf = (pages: MessagePage[]) =>
  pages.flatMap(({ messages }) => messages.map(({ sequence }) => sequence)).sort((a, b) => a - b)

const loggedMessages = async ({ conversationId }: SessionContent) =>
  (await cores.core.database.collections.events.find({ conversationId, message: { $exists: true } }).toArray())
    .map(({ sequence }) => sequence)
    .sort((a, b) => a - b)

const answer = ({ conversationId }: SessionContent, clientOperationId: string) =>
  sendAsAgent(cores.core, { conversationId, clientOperationId, body: clientOperationId })

/** Writes messages while `read` runs. The scheduler chooses the order of the database calls. */
async function whileWriting<T>(
  scheduler: Scheduler,
  session: SessionContent,
  read: (reader: RunningCore) => Promise<T>,
  written = 4,
): Promise<T> {
  const reading = read(cores.scheduledCore(scheduler))
  const writeAll = async () => {
    for (let index = 0; index < written; index += 1)
      await inTurn(scheduler, `message ${index}`, () => answer(session, `late-${index}`))
  }
  return (await scheduler.waitFor(Promise.all([reading, writeAll()])))[0]
}

const listWith = ({ conversationId }: SessionContent, reader: RunningCore, query: PageQuery) =>
  listMessages(reader, conversationId, query)

async function readForwards(session: SessionContent, reader: RunningCore, limit: number) {
  const pages: MessagePage[] = []
  for (let afterSequence = 0, hasMore = true; hasMore; ) {
    const page = await listWith(session, reader, { afterSequence, limit })
    pages.push(page)
    hasMore = page.hasMore
    afterSequence = page.messages.at(-1)?.sequence ?? afterSequence
  }
  return { pages, lastSequence: pages.at(-1)!.lastSequence }
}

/** Reads the newest page first, then older ones, as the browser package does. */
async function readBackwards(session: SessionContent, reader: RunningCore, limit: number) {
  const newest = await listWith(session, reader, { beforeSequence: beyondNewest, limit })
  const pages = [newest]
  while (pages.at(-1)!.hasMore) {
    const beforeSequence = pages.at(-1)!.messages[0]!.sequence
    pages.push(await listWith(session, reader, { beforeSequence, limit }))
  }
  return { pages, lastSequence: newest.lastSequence }
}

describe('history pages during concurrent writes', () => {
  it.each(
    someOf(
      [
        ['oldest first', readForwards],
        ['newest first', readBackwards],
      ],
      1,
    ),
  )('contain every message up to `lastSequence` when read %s', async (_, read) => {
    await forAllAsync([fc.scheduler(), fc.nat(5), pageSize], fewRuns, async (scheduler, before, limit) => {
      const session = await cores.newSession()
      for (let index = 0; index < before; index += 1) await answer(session, `early-${index}`)
      const { pages, lastSequence } = await whileWriting(scheduler, session, (reader) => read(session, reader, limit))
      const upTo = (await loggedMessages(session)).filter((sequence) => sequence <= lastSequence)
      expect(sequencesOf(pages).filter((sequence) => sequence <= lastSequence)).toEqual(upTo)
      for (const page of pages) expect(page.messages.every(({ sequence }) => sequence <= page.lastSequence)).toBe(true)
    })
  })

  it('contain each message once, together with a stream that starts at `lastSequence`', async () => {
    await forAllAsync([fc.scheduler(), fc.nat(3), pageSize], fewRuns, async (scheduler, before, limit) => {
      const session = await cores.newSession()
      for (let index = 0; index < before; index += 1) await answer(session, `early-${index}`)
      const { pages, stream } = await whileWriting(scheduler, session, async (reader) => {
        const { pages, lastSequence } = await readForwards(session, reader, limit)
        return {
          pages,
          stream: await cores.openStream(session, cores.core, { afterSequence: lastSequence }),
        }
      })
      const all = await loggedMessages(session)
      await expect.poll(() => [...sequencesOf(pages), ...stream.sequences]).toEqual(all)
    })
  })

  it('show each state change up to `lastSequence`, even before it is applied to its message', async () => {
    await forAllAsync([fc.scheduler()], fewRuns, async (scheduler) => {
      const session = await cores.newSession()
      const { conversationId } = session
      for (const key of ['one', 'two']) await cores.send(session, key, { key })
      const operators = cores.scheduledCore(scheduler)
      const changing = async () => {
        for (const state of ['sent', 'delivered', 'read'])
          await updateMessageStates(operators, { conversationId, upToSequence: 2, state }, undefined)
      }
      const reader = cores.scheduledCore(scheduler)
      const reading = async () => {
        const pages: MessagePage[] = []
        for (let count = 0; count < 4; count += 1) pages.push(await listWith(session, reader, {}))
        return pages
      }
      const [pages] = await scheduler.waitFor(Promise.all([reading(), changing()]))
      const log = await cores.core.database.collections.events.find({ conversationId }).toArray()
      for (const { messages, lastSequence } of pages) {
        const changes = log.filter(({ sequence }) => sequence <= lastSequence)
        for (const message of messages) {
          const relevant = changes.filter(({ messageSequence }) => messageSequence === message.sequence)
          const states = ['queued', ...relevant.map(({ data }) => data!.state!)]
          expect(order.indexOf(stateOf(message))).toBeGreaterThanOrEqual(
            Math.max(...states.map((state) => order.indexOf(state))),
          )
        }
      }
    })
  })
})

const order: string[] = ['queued', 'sent', 'delivered', 'read']
