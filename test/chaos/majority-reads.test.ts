import { MongoClient } from 'mongodb'
import { expect, it } from 'vitest'
import { atFileEnd } from '../support/clean-up.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import type { ClientContext } from './client-context.ts'
import { createRecorder } from './history.ts'
import { checkMajorityReads } from './majority-reads.ts'

const database = testDatabase()

it('a message is recorded as missing only if it was acknowledged and a majority read does not return it', async () => {
  const client = new MongoClient(database.uri)
  atFileEnd(() => client.close())
  const db = client.db(database.name)
  await db.collection('events').insertOne({ conversationId: 'cnv_1', sequence: 1, message: { messageId: 'msg_1' } })
  const recorder = createRecorder()
  const draining = new AbortController()
  const acknowledge = (sequence: number) =>
    recorder.add({
      kind: 'acknowledged',
      operation: `op-${sequence}`,
      conversationId: 'cnv_1',
      messageId: `msg_${sequence}`,
      sequence,
    })
  const checking = checkMajorityReads({ recorder, draining: draining.signal } as ClientContext, db)
  acknowledge(1)
  acknowledge(2)
  const found = () => recorder.entries.filter(({ kind }) => kind === 'not in majority')
  await until('the missing message', () => found().length > 0)
  draining.abort()
  await checking
  expect(found()).toEqual([{ kind: 'not in majority', operation: 'op-2' }])
})
