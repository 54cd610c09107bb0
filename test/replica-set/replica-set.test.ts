import { MongoClient } from 'mongodb'
import { expect, it } from 'vitest'
import { atFileEnd } from '../support/clean-up.ts'
import { testDatabase } from '../support/test-database.ts'
import { startReplicaSet } from './replica-set.ts'

const { uri, name } = testDatabase()

it('smoke', async () => {
  const set = await startReplicaSet(uri)
  atFileEnd(() => set.close())
  const client = new MongoClient(set.uri)
  atFileEnd(() => client.close())
  const a = client.db(name).collection<any>('a')
  await a.insertOne({ _id: 1, n: 0 })
  expect(await a.findOne({ _id: 1 })).toEqual({ _id: 1, n: 0 })
  set.faults.inNext({ when: 'after', matches: (c) => c === 'update' })
  await a.updateOne({ _id: 1 }, { $inc: { n: 1 } })
  expect(await a.findOne({ _id: 1 })).toEqual({ _id: 1, n: 1 })
  await set.stepDown()
  await a.updateOne({ _id: 1 }, { $inc: { n: 1 } })
  expect(await a.findOne({ _id: 1 })).toEqual({ _id: 1, n: 2 })
  await set.isolatePrimary()
  await a.updateOne({ _id: 1 }, { $inc: { n: 1 } })
  await set.rejoin()
  expect(await a.findOne({ _id: 1 })).toEqual({ _id: 1, n: 3 })
})
