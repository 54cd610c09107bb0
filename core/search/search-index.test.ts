import { expect, it } from 'vitest'
import { createBus } from '../bus.ts'
import type { LogEvent } from '../log-event.ts'
import { sessionStoreOf } from '../sessions/session-store.ts'
import { bareCore } from '../test/core-with.ts'
import { type SearchEntry, searchEntriesOf } from './search-entry-store.ts'
import { searchIndexOf } from './search-index.ts'

const event = (sequence: number) =>
  ({
    conversationId: 'cnv_1',
    sequence,
    type: 'message.accepted',
    occurredAt: new Date(),
    message: { messageId: `msg_${sequence}`, body: `word${sequence}` },
  }) as unknown as LogEvent

it('the search index stops after the write in progress, although many events wait', async () => {
  const written: SearchEntry[][] = []
  const firstWrite = Promise.withResolvers<void>()
  const answer = Promise.withResolvers<void>()
  const store: Partial<ReturnType<typeof searchEntriesOf>> = {
    workspacesOf: async () => new Map([['cnv_1', 'ws_1']]),
    async insert(entries) {
      written.push(entries)
      firstWrite.resolve()
      await answer.promise
    },
    replace: async () => {},
  }
  const bus = createBus()
  const core = bareCore({ db: {}, bus, logger: { debug() {}, warn() {} }, now: Date.now })
  searchEntriesOf.set(core, store as never)
  sessionStoreOf.set(core, { find: async () => [] } as never)
  const index = searchIndexOf(core)
  for (let sequence = 1; sequence <= 5_000; sequence += 1) bus.emit('appended', event(sequence))
  const flushed = index.flush()
  await firstWrite.promise
  core.closing.abort()
  answer.resolve()
  await flushed
  await index.catchUp()
  expect(written).toHaveLength(1)
})
