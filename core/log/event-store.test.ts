import { afterAll, expect, it } from 'vitest'
import { startFaultyProxy } from '../../test/support/faulty-proxy.ts'
import { isEngine, testClient, testDatabase } from '../../test/support/test-database.ts'
import { openDatabase } from '../database/database.ts'
import type { LogEvent } from '../log-event.ts'
import { createEventStore } from './event-store.ts'

const testing = testDatabase()
const { uri, name } = testing
const closing: (() => Promise<unknown>)[] = []
afterAll(async () => {
  for (const close of closing) await close()
})

const broken = 'the event store rejects an insert if the connection broke before the insert reached the database'
it.skipIf(!isEngine(testing))(broken, async () => {
  const proxy = await startFaultyProxy(decodeURIComponent(new URL(uri).host))
  closing.push(proxy.close)
  const database = await openDatabase({
    uri: `mongodb://127.0.0.1:${proxy.port}/?directConnection=true`,
    name,
    timeoutMs: 3_000,
  })
  closing.unshift(database.close)
  const store = createEventStore(database.collections)
  const event = (sequence: number): LogEvent => ({
    conversationId: 'cnv_1',
    sequence,
    type: 'message.accepted',
    occurredAt: new Date(0),
  })
  expect(await store.insert([event(1)])).toEqual(['inserted'])
  proxy.cut()
  await expect(store.insert([event(2)])).rejects.toThrow()
  proxy.mend()

  expect(await testClient().db(name).collection('events').distinct('sequence')).toEqual([1])
})
