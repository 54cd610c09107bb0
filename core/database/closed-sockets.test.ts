import { setTimeout as delay } from 'node:timers/promises'
import { MongoClient, MongoNetworkError } from 'mongodb'
import { afterAll, expect, it } from 'vitest'
import { testDatabase } from '../../test/support/test-database.ts'
import { until } from '../../test/support/until.ts'
import { failOnClosedSockets } from './closed-sockets.ts'

const { uri } = testDatabase()
const clients: MongoClient[] = []
afterAll(async () => {
  for (const client of clients) await client.close()
})

// biome-ignore lint/suspicious/noExplicitAny: the driver has no types for its internals
type DriverConnection = any

async function connect(): Promise<{ client: MongoClient; connection: DriverConnection }> {
  failOnClosedSockets()
  const client = await MongoClient.connect(uri)
  clients.push(client)
  const [server] = [...(client as DriverConnection).topology.s.servers.values()]
  return { client, connection: await until("the monitor's connection", () => server.monitor.connection) }
}

const hello = (connection: DriverConnection) =>
  connection.command({ db: 'admin', toString: () => 'admin.$cmd' }, { hello: 1 }, {})

it('a database command on a connection that has just closed fails instead of hanging', async () => {
  const { client, connection } = await connect()
  // Closes the monitor's socket without waiting for its `close` event. The command below is
  // therefore sent on a socket that is already closed, as when a server dies.
  connection.socket.destroy()
  await expect(Promise.race([hello(connection), delay(3_000)])).rejects.toThrow('the connection has ended')
  expect(await client.db('admin').command({ ping: 1 })).toMatchObject({ ok: 1 })
})

it('a database command whose connection ends while its write waits fails with an error that the driver repeats', async () => {
  const { client, connection } = await connect()
  const { socket } = connection
  socket.write = () => {
    const error = Object.assign(new Error('write ECONNRESET'), { code: 'ECONNRESET', syscall: 'write' })
    process.nextTick(() => socket.destroy(error))
    return false
  }
  await expect(hello(connection)).rejects.toBeInstanceOf(MongoNetworkError)
  expect(await client.db('admin').command({ ping: 1 })).toMatchObject({ ok: 1 })
})
