import { MongoClient } from 'mongodb'
import { expect, it } from 'vitest'
import { dumpDatabase, restoreDump } from '../support/database-dump.ts'
import { useStartingCores } from './starting-cores.ts'

const { startCore, untilReady, proxyToEngine, database } = useStartingCores()

it('a core whose data is restored while it runs ends, so that its caches do not outlive the data', async () => {
  const core = await startCore((await proxyToEngine()).uri)
  await untilReady(core)
  const client = new MongoClient(database.uri)
  const db = client.db(database.name)
  await restoreDump(db, await dumpDatabase(db))
  await client.close()
  const { code } = await core.process.exited
  expect(core.process.output()).toContain('The data was restored while this core ran')
  expect(code).toBe(1)
})
