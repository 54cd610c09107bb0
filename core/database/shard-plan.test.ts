import { MongoClient } from 'mongodb'
import { afterAll, describe, expect, it } from 'vitest'
import { testDatabase } from '../../test/support/test-database.ts'
import { collectionsOf } from './collections.ts'
import { indexes } from './indexes.ts'
import { shard, shardCommands, shardPlans } from './shard-plan.ts'

const { uri, name } = testDatabase({ isNew: true })
const client = new MongoClient(uri)
const db = client.db(name)
afterAll(() => client.close())

const planOf = (collection: string) => shardPlans.find((plan) => plan.collection === collection)

describe('the shard plan', () => {
  it('has an entry for every collection', () => {
    const planned = shardPlans.map(({ collection }) => collection).filter((name) => !name.startsWith('screenshots'))
    expect(planned.toSorted()).toEqual(Object.keys(collectionsOf(db)).toSorted())
  })

  it.each(indexes.filter(([, , { unique }]) => unique))(
    'keeps the unique index of %s on %o unique on a cluster',
    (collection, keys) => {
      const { key } = planOf(collection) ?? {}
      if (!key) return
      const prefix = Object.entries(keys).slice(0, Object.keys(key).length)
      expect(prefix).toEqual(Object.entries(key))
    },
  )

  it("returns the sharding commands for a cluster's router", () => {
    expect(shardCommands('service')).toContainEqual({
      shardCollection: 'service.events',
      key: { conversationId: 1 },
    })
  })

  it('changes nothing on a server that is not a cluster', async () => {
    expect(await shard(db)).toBe(false)
  })
})
