import { MongoClient } from 'mongodb'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createBatcher } from '../../platform/concurrency/batcher.ts'
import { testDatabase } from '../../test/support/test-database.ts'
import { insertEach } from './insert-each.ts'

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
  await letters.createIndex({ text: 1 }, { unique: true })
  client.on('commandStarted', ({ commandName }) => {
    if (commandName === 'insert') calls += 1
  })
})
afterAll(() => client.close())

describe('concurrent inserts in batches', () => {
  it('need few database calls, and return false for each document with a duplicate key', async () => {
    const { add: insert } = createBatcher((documents: Letter[]) => insertEach(letters, documents))
    const documents = Array.from({ length: 300 }, (_, index) => ({ _id: `l${index}`, text: `${index % 290}` }))
    const outcomes = await Promise.all(documents.map(insert))
    expect(outcomes.filter(Boolean)).toHaveLength(290)
    expect(await letters.countDocuments()).toBe(290)
    expect(calls).toBeLessThanOrEqual(3)
  })

  it('reject only the document that the database rejects', async () => {
    const { add: insert } = createBatcher((documents: Letter[]) => insertEach(letters, documents))
    const huge = { _id: 'huge', text: 'x'.repeat(17 * 1024 * 1024) }
    const outcomes = await Promise.allSettled([insert({ _id: 'fits', text: 'fits' }), insert(huge)])
    expect(outcomes[1]?.status).toBe('rejected')
    // The database may also reject the other document of the batch. Inserting that document again must succeed.
    if (outcomes[0]?.status === 'rejected') expect(await insert({ _id: 'fits', text: 'fits' })).toBe(true)
    expect(await letters.countDocuments({ _id: 'fits' })).toBe(1)
  })

  it('give the same results if a batch contains only one document', async () => {
    const { add: insert } = createBatcher((documents: Letter[]) => insertEach(letters, documents))
    expect(await insert({ _id: 'single', text: 'single' })).toBe(true)
    expect(await insert({ _id: 'other', text: 'single' })).toBe(false)
    await expect(insert({ _id: 'huge', text: 'x'.repeat(17 * 1024 * 1024) })).rejects.toThrow()
    expect(await letters.find({ _id: { $in: ['single', 'other', 'huge'] } }).toArray()).toEqual([
      { _id: 'single', text: 'single' },
    ])
  })

  it('fail when the database is unreachable', async () => {
    const away = new MongoClient(uri)
    await away.connect()
    const gone = away.db(name).collection<Letter>('letters')
    const { add: insert } = createBatcher((documents: Letter[]) => insertEach(gone, documents))
    await away.close()
    await expect(insert({ _id: 'late' })).rejects.toThrow()
  })
})
