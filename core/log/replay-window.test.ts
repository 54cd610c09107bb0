import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { testDatabase } from '../../test/support/test-database.ts'
import { type Database, openDatabase } from '../database/database.ts'
import { newId } from '../ids.ts'
import { createEventLog } from './event-log.ts'
import { createEventStore } from './event-store.ts'
import { createLogHeads } from './log-heads.ts'
import { createReplayWindow, replayPage } from './replay-window.ts'

const { uri, name } = testDatabase()
let database: Database
beforeAll(async () => {
  database = await openDatabase({ uri, name, timeoutMs: 5000 })
})
afterAll(() => database.close())

describe('simultaneous reads', () => {
  it('return the same pages as single reads, also when a shared result is cut off', async () => {
    const store = createEventStore(database.collections)
    const log = createEventLog({ store, heads: createLogHeads(store), now: Date.now, onAppended() {} })
    const conversations = Array.from({ length: 45 }, () => newId('cnv'))
    // The last five conversations stay empty.
    for (let turn = 0; turn < 90; turn += 1) {
      await Promise.all(
        conversations.slice(0, 40).map((conversationId) => log.append({ conversationId, type: 'agent.unassigned' })),
      )
    }
    const reads: string[] = []
    const window = createReplayWindow(
      {
        ...store,
        readManyAfter(...request) {
          reads.push('shared')
          return store.readManyAfter(...request)
        },
        readAfter(...request) {
          reads.push('own')
          return store.readAfter(...request)
        },
      },
      { maxEvents: 1000, maxAge: 3600 },
      Date.now,
    )
    const starts = conversations.map((conversationId, index) => ({ conversationId, after: index % 7 }))
    const pages = await Promise.all(starts.map(({ conversationId, after }) => window.read(conversationId, after)))
    for (const [index, page] of pages.entries()) {
      expect(page).toEqual(await store.readAfter(starts[index]!, replayPage))
    }
    expect(reads.filter((kind) => kind === 'shared')).toHaveLength(1)
    expect(reads.filter((kind) => kind === 'own').length).toBeLessThan(starts.length / 2)
  })
})
