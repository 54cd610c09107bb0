import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { runs } from '../../test/support/is-long.ts'
import { bareCore } from '../test/core-with.ts'
import { testCores } from '../test/cores.ts'
import { runScheduled, scheduledDatabase } from '../test/scheduled-database.ts'
import { appendToFeed, entriesAfter } from './feed-log.ts'
import type { NewFeedEntry } from './model.ts'

const cores = testCores({ started: false })

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
