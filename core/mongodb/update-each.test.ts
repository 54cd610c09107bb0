import { MongoClient } from 'mongodb'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createBatcher } from '../../platform/concurrency/batcher.ts'
import { testDatabase } from '../../test/support/test-database.ts'
import { type DocumentUpdate, updateEach } from './update-each.ts'

interface Letter {
  _id: string
  text?: string
}

const { uri, name } = testDatabase({ isNew: true })
const client = new MongoClient(uri, { monitorCommands: true })
const letters = client.db(name).collection<Letter>('letters')
let calls = 0
beforeAll(async () => {
  await client.connect()
  client.on('commandStarted', ({ commandName }) => {
    if (commandName === 'update') calls += 1
  })
})
afterAll(() => client.close())

const ids = Array.from({ length: 100 }, (_, index) => `l${index}`)
const writing = (text: string) => (_id: string) => ({ filter: { _id }, update: { $set: { text } } })
const texts = async () =>
  new Set(
    await letters
      .find({})
      .map(({ text }) => text)
      .toArray(),
  )

async function concurrently(updates: DocumentUpdate<Letter>[]) {
  await letters.deleteMany({})
  await letters.insertMany(ids.map((_id) => ({ _id })))
  calls = 0
  const { add: update } = createBatcher((each: DocumentUpdate<Letter>[]) => updateEach(letters, each))
  return Promise.allSettled(updates.map(update))
}

test('concurrent updates of documents that exist need one database call', async () => {
  const outcomes = await concurrently(ids.map(writing('new')))
  expect(outcomes).toEqual(ids.map(() => ({ status: 'fulfilled', value: true })))
  expect(calls).toBe(1)
  expect(await texts()).toEqual(new Set(['new']))
})

test('an update returns false if no document matches, and true if the document has the new values already', async () => {
  const outcomes = await concurrently(['l1', 'missing', 'l2', 'l1'].map(writing('new')))
  expect(outcomes.map((outcome) => outcome.status === 'fulfilled' && outcome.value)).toEqual([true, false, true, true])
  expect(await letters.countDocuments({ text: 'new' })).toBe(2)
})

test.each([
  ['the database rejects', { $set: { _id: 'other' } }],
  ['the driver rejects for its size', { $set: { text: 'x'.repeat(17 * 1024 * 1024) } }],
])('an update that %s does not reject the other updates', async (_, update) => {
  const outcomes = await concurrently([...['l1', 'l2'].map(writing('new')), { filter: { _id: 'l3' }, update }])
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected'])
  expect(await letters.countDocuments({ text: 'new' })).toBe(2)
})
