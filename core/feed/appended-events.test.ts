import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { runs } from '../../test/support/is-long.ts'
import { closeConversation } from '../conversations/assignments.ts'
import { setTypingOfAgent } from '../conversations/typing.ts'
import { eventsOf } from '../log/event-store.ts'
import type { LogEvent } from '../log-event.ts'
import { bareCore } from '../test/core-with.ts'
import { answer, send, type TestVisitor, testCores } from '../test/cores.ts'
import { flushFeed } from '../test/feed.ts'
import { runScheduled, scheduledDatabase } from '../test/scheduled-database.ts'
import { createAppendedEventsMemory } from './appended-events.ts'
import { appendToFeed, entriesAfter } from './feed-log.ts'
import type { NewFeedEntry } from './model.ts'

/** The third core adds no entry by itself, because it has flushed nothing. */
const cores = testCores({ count: 3, started: false })

const sequencesInFeed = async (workspaceId: string) =>
  (await entriesAfter(cores.core, workspaceId, 0, 1_000)).map(({ sequence }) => sequence)

const agent = { displayName: 'Ada' }
const steps = ['send', 'answer', 'typing', 'close', 'flush', 'read again'] as const

it('the feed has each event of a conversation once and in order, whichever core appends it and adds its entry', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ core: fc.nat(1), step: fc.constantFrom(...steps) }), { minLength: 1, maxLength: 25 }),
      async (plan) => {
        const visitor = await cores.newVisitor(await cores.newSite())
        const { conversationId, workspaceId } = visitor
        await send(cores.core, visitor, 'first')
        let running: Promise<unknown>[] = []
        for (const [index, { core: which, step }] of plan.entries()) {
          const core = cores.cores[which]!
          if (step === 'send') await send(core, visitor, `send-${index}`)
          if (step === 'answer') await answer(core, visitor, `answer-${index}`)
          if (step === 'typing')
            await setTypingOfAgent(core, { conversationId, state: index % 2 ? 'started' : 'stopped', agent }, undefined)
          if (step === 'close') await closeConversation(core, conversationId, undefined)
          // The rest of the plan goes on meanwhile.
          if (step === 'flush') running.push(flushFeed(core))
          if (step === 'read again') {
            await Promise.all(running)
            running = []
          }
        }
        await Promise.all([...running, ...cores.cores.slice(0, 2).map((core) => flushFeed(core))])
        const logged = (await cores.log(conversationId)).filter(({ type }) => !type.startsWith('typing'))
        expect(await sequencesInFeed(workspaceId)).toEqual([0, ...logged.map(({ sequence }) => sequence)])
      },
    ),
    runs(80, 20),
  )
}, 60_000)

const event = (sequence: number, type: LogEvent['type'] = 'message.accepted') =>
  ({ conversationId: 'cnv_1', sequence, type }) as LogEvent

function taken(events: LogEvent[], complete: number | undefined, ageMs = 0) {
  let time = 0
  const memory = createAppendedEventsMemory(() => time)
  if (complete !== undefined) memory.complete('cnv_1', 'ws_1', complete)
  for (const each of events) memory.add(each)
  time += ageMs
  return memory.take(10).map((each) => ({ ...each, events: each.events?.map(({ sequence }) => sequence) }))
}

it.each([
  ['the next events', [event(4), event(5)], 3, [4, 5]],
  ['an event without an entry before the next', [event(4, 'typing.started'), event(5)], 3, [5]],
  ['a gap, because another core appended an event', [event(5)], 3, undefined],
  ['a gap between two events', [event(4), event(6)], 3, undefined],
  ['a conversation of which nothing is known', [event(4)], undefined, undefined],
])('entries are added without a read of the log only for %s', (_, events, complete, expected) => {
  expect(taken(events, complete)).toMatchObject([{ end: events.at(-1)!.sequence, events: expected }])
})

it('an event without an entry does not hide that another core appended the one before it', async () => {
  const visitor = await cores.newVisitor(await cores.newSite())
  const { conversationId, workspaceId } = visitor
  await send(cores.core, visitor, 'first')
  await flushFeed(cores.core)
  const silent = cores.cores[2]!
  await answer(silent, visitor, 'second')
  await setTypingOfAgent(cores.core, { conversationId, state: 'started', agent }, undefined)
  await send(cores.core, visitor, 'fourth')
  await flushFeed(cores.core)
  expect(await sequencesInFeed(workspaceId)).toEqual([0, 1, 2, 4])
})

it('the log is read for events that waited for twenty seconds, for more than 200, and after a failed write', () => {
  expect(taken([event(4)], 3, 20_000)).toMatchObject([{ events: undefined }])
  expect(
    taken(
      Array.from({ length: 201 }, (_, index) => event(4 + index)),
      3,
    ),
  ).toMatchObject([{ events: undefined }])
  const memory = createAppendedEventsMemory()
  memory.complete('cnv_1', 'ws_1', 3)
  memory.add(event(4))
  const batch = memory.take(10)
  memory.add(event(5))
  memory.putBack(batch)
  expect(memory.take(10)).toMatchObject([{ end: 5, events: undefined }])
})

it('the entries of a conversation that is known are added without a read of its log', async () => {
  const visitor: TestVisitor = await cores.newVisitor(await cores.newSite())
  await send(cores.core, visitor, 'first')
  await flushFeed(cores.core)
  const events = eventsOf(cores.core)
  const read = events.ofTypes
  let reads = 0
  events.ofTypes = (...query) => {
    reads += 1
    return read(...query)
  }
  try {
    for (const text of ['second', 'third']) {
      await send(cores.core, visitor, text)
      await flushFeed(cores.core)
    }
    expect([reads, await sequencesInFeed(visitor.workspaceId)]).toEqual([0, [0, 1, 2, 3]])
    await answer(cores.cores[2]!, visitor, 'of-another-core')
    await send(cores.core, visitor, 'fifth')
    await flushFeed(cores.core)
    expect([reads, await sequencesInFeed(visitor.workspaceId)]).toEqual([1, [0, 1, 2, 3, 4, 5]])
  } finally {
    events.ofTypes = read
  }
})

describe('feed writers', () => {
  /** Entries of a conversation, in their order. */
  const entriesOf = (conversationId: string, count: number): NewFeedEntry[] =>
    Array.from({ length: count }, (_, sequence) => ({
      source: `${conversationId} ${sequence}`,
      type: 'message.visitor',
      occurredAt: new Date(),
      conversationId,
      sequence,
    }))

  /**
   * A reader that reads between any two calls of the writers. It goes on after the last number that it
   * has read, so a later commit at or below it would be missed.
   */
  async function follow(workspaceId: string, isOver: () => boolean, step: () => Promise<unknown>) {
    const read: { number: number; source?: string | undefined }[] = []
    for (let last = false; !last; ) {
      last = isOver()
      read.push(...(await entriesAfter(cores.core, workspaceId, read.at(-1)?.number ?? 0, 2)))
      if (!last) await step()
    }
    for (;;) {
      const more = await entriesAfter(cores.core, workspaceId, read.at(-1)?.number ?? 0, 100)
      if (more.length === 0) return read
      read.push(...more)
    }
  }

  it('a reader misses nothing of competing writers, whatever their order and their clocks', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(
          fc.record({
            skewMs: fc.integer({ min: -2_000, max: 2_000 }),
            parts: fc.array(fc.tuple(fc.constantFrom('a', 'b'), fc.integer({ min: 1, max: 4 })), { maxLength: 3 }),
          }),
          { minLength: 2, maxLength: 3 },
        ),
        async (scheduler, writers) => {
          const workspaceId = `ws_${randomUUID()}`
          let running = writers.length
          const writing = writers.map(async ({ skewMs, parts }) => {
            const db = scheduledDatabase(scheduler, cores.core.database).collections
            const core = bareCore({ db, now: () => Date.now() + skewMs })
            for (const [conversation, count] of parts)
              await appendToFeed(core, workspaceId, entriesOf(conversation, count))
            running -= 1
          })
          const reading = follow(
            workspaceId,
            () => running === 0,
            () => scheduler.schedule(Promise.resolve(), 'the reader'),
          )
          await runScheduled(scheduler, Promise.all([...writing, reading]))
          const read = await reading
          expect(read.map(({ number }) => number)).toEqual(read.map((_, index) => index + 1))
          for (const conversation of ['a', 'b']) {
            const wanted = Math.max(
              0,
              ...writers.flatMap(({ parts }) => parts.filter(([of]) => of === conversation).map(([, count]) => count)),
            )
            const theirs = read.flatMap(({ source = '' }) => (source.startsWith(`${conversation} `) ? [source] : []))
            expect(theirs).toEqual(entriesOf(conversation, wanted).map(({ source }) => source))
          }
        },
      ),
      runs(120, 20),
    )
  })
})
