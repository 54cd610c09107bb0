import { expect, it } from 'vitest'
import { startFaultyProxy } from '../support/faulty-proxy.ts'
import { startLocalStack } from '../support/local-stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { timedStatus } from './service-parts.ts'

const database = testDatabase()

it('while each round trip to the database takes 600 ms, cores stay ready and accept sends; they leave when it is away', async () => {
  const proxy = await startFaultyProxy(decodeURIComponent(/^mongodb:\/\/([^/?]+)/.exec(database.uri)![1]!))
  const slowUri = `mongodb://127.0.0.1:${proxy.port}/?directConnection=true`
  const stack = await startLocalStack({ database: { ...database, uri: slowUri }, cores: 2 })
  const visitor = await stack.newVisitor()
  const statuses = () => Promise.all(stack.cores.map(async ({ url }) => (await timedStatus(`${url}/readyz`)).status))
  proxy.slow(300)
  const seen = new Set<number>()
  const accepted = new Set<number>()
  for (let sends = 0; sends < 10; sends += 1) {
    accepted.add((await visitor.send(`Message ${sends}`)).status)
    for (const status of await statuses()) seen.add(status)
  }
  expect([[...accepted], [...seen]]).toEqual([[202], [200]])
  proxy.cut()
  await until('both cores are unready', async () => (await statuses()).every((status) => status === 503))
  proxy.mend()
  await until('both cores are ready', async () => (await statuses()).every((status) => status === 200))
  await proxy.close()
})
