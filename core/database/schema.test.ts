import { beforeEach, describe, expect, it } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { testClient, testDatabase } from '../../test/support/test-database.ts'
import { openDatabase } from './database.ts'
import { createMigrationLock } from './migration-lock.ts'
import { isReady, migrate, migrations, schemaStatus } from './schema.ts'

const { uri, name } = testDatabase({ isNew: true })
const db = testClient().db(name)
beforeEach(() => db.dropDatabase())

const open = (migrates: boolean) => openDatabase({ uri, name, timeoutMs: 5000, migrates })

describe('a database', () => {
  it('is not ready before its first migration, and is ready afterwards', async () => {
    const before = await schemaStatus(db)
    expect(isReady(before)).toBe(false)
    expect(before.missing).toContain('events.by_sequence')
    expect(before.toExpand.map(({ number }) => number)).toEqual([1])
    expect((await db.listCollections().toArray()).length).toBe(0)
    expect(isReady(await migrate(db))).toBe(true)
    expect(isReady(await schemaStatus(db))).toBe(true)
    const [wakeups] = await db.listCollections({ name: 'wakeups' }).toArray()
    expect((wakeups as { options?: object }).options).toMatchObject({ capped: true })
  })

  it('is rejected if it is outdated and the core may not migrate it, and the error names the command to run', async () => {
    await expect(open(false)).rejects.toThrow(/run npm run migrate: wakeups, events\.by_sequence.*migration 1 /)
    await migrate(db)
    await (await open(false)).close()
    await db.collection('events').dropIndex('by_operation')
    await expect(open(false)).rejects.toThrow(
      'the database is behind this version, run npm run migrate: events.by_operation',
    )
    await (await open(true)).close()
    await (await open(false)).close()
  })
})

describe('a migration', () => {
  type Colored = { _id: string; color?: string; colour?: string }
  const things = () => db.collection<Colored>('things')
  /** Copies the new name of a field in its expand step, and removes the old one in its contract step. */
  const copy = async () =>
    void (await things().updateMany({ color: { $exists: true } }, [{ $set: { colour: '$color' } }]))
  const renaming = {
    number: 2,
    name: 'a field is renamed',
    expand: copy,
    async contract() {
      await copy()
      await things().updateMany({}, { $unset: { color: '' } })
    },
  }
  const all = [...migrations, renaming]
  const pendingOf = async () => (await schemaStatus(db, all)).toContract.map(({ number }) => number)

  it('converts existing documents in its expand step, and those that were written later in its contract step', async () => {
    await things().insertOne({ _id: 'before', color: 'red' })
    expect((await migrate(db, { all })).toContract.map(({ number }) => number)).toEqual([2])
    await things().insertOne({ _id: 'beside', color: 'blue' })
    expect(await things().find().toArray()).toEqual([
      { _id: 'before', color: 'red', colour: 'red' },
      { _id: 'beside', color: 'blue' },
    ])
    expect((await migrate(db, { all, contract: true })).toContract).toEqual([])
    expect(await things().find().toArray()).toEqual([
      { _id: 'before', colour: 'red' },
      { _id: 'beside', colour: 'blue' },
    ])
  })

  itLong(
    'contracts no database unasked: not an empty one, one half migrated, or one that four processes migrate',
    async () => {
      await migrate(db, { all })
      expect(await pendingOf()).toEqual([2])
      await (await open(true)).close()
      expect(await pendingOf()).toEqual([2])
      await db.dropDatabase()
      await db.createCollection('wakeups')
      await db.collection<{ _id: number }>('migrations').insertOne({ _id: 1 })
      await Promise.all(Array.from({ length: 4 }, () => migrate(db, { all })))
      expect(await pendingOf()).toEqual([2])
      expect((await migrate(db, { all, contract: true })).toContract).toEqual([])
    },
  )

  itLong('runs once when four processes start it at the same time', async () => {
    await Promise.all(Array.from({ length: 4 }, () => migrate(db, { all })))
    const first = await db.collection('migrations').find().toArray()
    await migrate(db, { all })
    expect(first.length).toBe(2)
    expect(await db.collection('migrations').find().toArray()).toEqual(first)
    expect(await db.collection('locks').countDocuments()).toBe(0)
  })

  it('that failed stays pending and is named in the error', async () => {
    const failing = { ...renaming, expand: () => Promise.reject(new Error('no place')) }
    await expect(migrate(db, { all: [...migrations, failing] })).rejects.toThrow(
      'migration 2 (a field is renamed) failed: no place',
    )
    expect((await schemaStatus(db, all)).toExpand).toEqual([renaming])
  })

  it('of a newer version is refused only after its contract step', async () => {
    await migrate(db, { all })
    await (await open(true)).close()
    await migrate(db, { all, contract: true })
    await expect(open(true)).rejects.toThrow('its migration 2 (a field is renamed) has removed what this version uses')
  })
})

describe('the migration lock', () => {
  it('makes concurrent processes run their work one after the other', async () => {
    let running = 0
    let most = 0
    const work = async () => {
      most = Math.max(most, ++running)
      await db.collection('work').insertOne({})
      running -= 1
    }
    await Promise.all(Array.from({ length: 5 }, () => createMigrationLock(db, Date.now).holding(work)))
    expect([most, await db.collection('work').countDocuments()]).toEqual([1, 5])
  })

  it("is taken over when its owner's lease has expired, and `check` then fails for the former owner", async () => {
    let ahead = 0
    const now = () => Date.now() + ahead
    const dead = createMigrationLock(db, now)
    let late: Promise<void> = Promise.resolve()
    const hanging = Promise.withResolvers<void>()
    let check: (() => Promise<void>) | undefined
    const first = dead.holding((given) => {
      check = given
      return hanging.promise
    })
    await expect.poll(() => db.collection('locks').countDocuments()).toBe(1)
    ahead = 16_000
    await createMigrationLock(db, now).holding(async () => {
      late = check!()
      await late.catch(() => {})
    })
    await expect(late).rejects.toThrow('another process has taken over the work')
    hanging.resolve()
    await first
  })
})
