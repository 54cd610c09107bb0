import { setTimeout as delay } from 'node:timers/promises'
import { MongoClient } from 'mongodb'
import { afterAll, expect, it } from 'vitest'
import { testDatabase } from '../../test/support/test-database.ts'
import { until } from '../../test/support/until.ts'
import { failOnClosedSockets } from './closed-sockets.ts'

const client = new MongoClient(testDatabase().uri)
afterAll(() => client.close())

it('a database command on a connection that has just closed fails instead of hanging', async () => {
  failOnClosedSockets()
  await client.connect()
  // biome-ignore lint/suspicious/noExplicitAny: the driver has no types for its internals
  const [server] = [...(client as any).topology.s.servers.values()]
  const connection = await until("the monitor's connection", () => server.monitor.connection)
  // Closes the monitor's socket without waiting for its `close` event. The command below is
  // therefore sent on a socket that is already closed, as when a server dies.
  connection.socket.destroy()
  const asked = connection.command({ db: 'admin', toString: () => 'admin.$cmd' }, { hello: 1 }, {})
  await expect(Promise.race([asked, delay(3_000)])).rejects.toThrow('the connection has ended')
  expect(await client.db('admin').command({ ping: 1 })).toMatchObject({ ok: 1 })
})
