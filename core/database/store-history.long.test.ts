import { beforeEach, describe, expect, it } from 'vitest'
import { dumpDatabase, restoreDump, restoreSnapshot } from '../../test/support/database-dump.ts'
import { testClient, testDatabase } from '../../test/support/test-database.ts'
import { migrate } from './schema.ts'
import { beginHistory, currentHistory } from './store-history.ts'

const { name } = testDatabase({ isNew: true })
const db = testClient().db(name)
beforeEach(async () => {
  await db.dropDatabase()
  await migrate(db)
})

describe('the history of a database', () => {
  it('is empty and stays empty until the data is restored', async () => {
    expect(await currentHistory(db)).toBe('')
    await migrate(db, { contract: true })
    expect(await currentHistory(db)).toBe('')
  })

  it('is another one after each mongorestore, even of the same dump', async () => {
    const histories = [await currentHistory(db)]
    const dump = await dumpDatabase(db)
    for (let times = 0; times < 2; times += 1) {
      await restoreDump(db, dump)
      histories.push(await currentHistory(db), await currentHistory(db))
    }
    const [first, second, secondAgain, third, thirdAgain] = histories
    expect([second, third]).toEqual([secondAgain, thirdAgain])
    expect(new Set([first, second, third]).size).toBe(3)
    expect(second).toMatch(/^[0-9a-f]{10}$/)
  })

  it('is another one after the restore of a dump that an earlier version wrote', async () => {
    const dump = await dumpDatabase(db)
    await currentHistory(db)
    await restoreDump(db, dump)
    expect(await currentHistory(db)).not.toBe('')
  })

  it('is the same in processes that find the restored data at the same time', async () => {
    await currentHistory(db)
    await restoreDump(db, await dumpDatabase(db))
    const found = await Promise.all(Array.from({ length: 8 }, () => currentHistory(db)))
    expect(new Set(found).size).toBe(1)
    expect(found[0]).not.toBe('')
  })

  it('stays the same after the restore of a snapshot, until the operator begins another one', async () => {
    await currentHistory(db)
    await restoreSnapshot(db, await dumpDatabase(db))
    expect(await currentHistory(db)).toBe('')
    const history = await beginHistory(db)
    expect(history).not.toBe('')
    expect(await currentHistory(db)).toBe(history)
  })
})
