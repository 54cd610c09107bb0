import { Code, ConnectError, createClient } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { PeerService } from '#proto/peer/v1/peer_pb.js'
import { freePort } from '../../test/support/free-port.ts'
import { testDatabase } from '../../test/support/test-database.ts'
import { until } from '../../test/support/until.ts'
import { openDatabase } from '../database/database.ts'
import { serveCore } from '../server.ts'
import { answer, createTestCore, startTestCores } from '../test/cores.ts'
import { authorizeStream, openStreamAt } from '../test/streams.ts'
import { peerScope } from '../workspaces/access.ts'

const database = testDatabase()
const closing: (() => Promise<unknown>)[] = []
afterAll(async () => {
  for (const close of closing.reverse()) await close()
})

/** Starts a core that serves its port and registers its URL. */
async function startServedCore(port: number, url = `http://127.0.0.1:${port}`) {
  const opened = await openDatabase({ ...database, timeoutMs: 5000 })
  const core = createTestCore(opened, Date.now, { CORE_PEER_URL: url })
  const server = await serveCore(core, { host: '127.0.0.1', port })
  core.start()
  async function stop() {
    await server.close()
    await core.stop()
  }
  closing.push(stop)
  return { core, server, port, stop }
}

const linked = async ({ core }: Served) => (await core.metrics.peers.get()).values[0]?.value
const missed = async ({ core }: Served) => (await core.metrics.missedWakeups.get()).values[0]?.value
type Served = Awaited<ReturnType<typeof startServedCore>>

let setup: Awaited<ReturnType<typeof startTestCores>>
let first: Served
let second: Served
beforeAll(async () => {
  setup = await startTestCores(database, { started: false })
  closing.push(() => setup.stop())
  first = await startServedCore(await freePort())
  second = await startServedCore(await freePort())
  await until('the cores are linked', async () => (await linked(first)) === 1 && (await linked(second)) === 1)
})

/** Opens a stream of a new visitor at the second core. */
async function openStream() {
  const visitor = await setup.newVisitor()
  const stream = await openStreamAt(second.core, await authorizeStream(second.core, visitor), {})
  return { visitor, stream }
}

/** Makes the core's writes of wake-ups fail until the returned function is called. */
function rejectWakeups({ core }: Served) {
  const { wakeups } = core.database.collections
  const { insertOne } = wakeups
  wakeups.insertOne = () => Promise.reject(new Error('rejected by the test'))
  return () => {
    wakeups.insertOne = insertOne
  }
}

/** Makes the core reject the announcements of other cores until the returned function is called. */
function rejectAnnouncements({ core }: Served) {
  const { announced } = core.wakeups
  core.wakeups.announced = () => {
    throw new Error('rejected by the test')
  }
  return () => {
    core.wakeups.announced = announced
  }
}

it('two linked cores deliver each other’s events in order, without wake-ups and checks', async () => {
  const { visitor, stream } = await openStream()
  const allowWakeups = rejectWakeups(first)
  try {
    const texts = Array.from({ length: 40 }, (_, index) => `m${index}`)
    await Promise.all(texts.slice(0, 20).map((text) => answer(first.core, visitor, text)))
    await until('the events arrive', () => stream.sequences.length === 20)
    for (const [index, text] of texts.slice(20).entries()) {
      await answer(first.core, visitor, text)
      await until('the event arrives', () => stream.sequences.length === 21 + index)
    }
    const log = await setup.log(visitor.conversationId)
    expect(stream.sequences).toEqual(log.map(({ sequence }) => sequence))
    expect(stream.json.map((json) => JSON.parse(json).data.message.body)).toEqual(
      log.map(({ message }) => message?.body),
    )
    // The check, which runs every three seconds, may be faster than an announcement.
    expect(await missed(second)).toBeLessThan(10)
  } finally {
    allowWakeups()
  }
})

it('an event arrives by a wake-up while cores do not answer, and the cores are linked again once they answer', async () => {
  const third = await startServedCore(await freePort())
  await until('all are linked', async () => (await linked(first)) === 2)
  await third.server.close()
  const { visitor, stream } = await openStream()
  const allowAnnouncements = rejectAnnouncements(second)
  await answer(first.core, visitor, 'one')
  await until('the event arrives', () => stream.sequences.length === 1)
  await until('no core is linked', async () => (await linked(first)) === 0)
  allowAnnouncements()
  const again = await serveCore(third.core, { host: '127.0.0.1', port: third.port })
  await until('all are linked again', async () => (await linked(first)) === 2)
  await again.close()
  await third.core.stop()
})

it('a core is not linked if another process answers at its URL', async () => {
  const wrong = await startServedCore(await freePort(), `http://127.0.0.1:${second.port}`)
  await until(
    'the register names three cores',
    async () => (await setup.core.stores.peers.others('', new Date())).length >= 3,
  )
  await first.core.peers.refresh()
  expect(first.core.peers.areLinked()).toBe(false)
  const { visitor, stream } = await openStream()
  await answer(wrong.core, visitor, 'from-the-wrong-core')
  await answer(first.core, visitor, 'from-the-first-core')
  await until('both events arrive', () => stream.sequences.length === 2)
  await wrong.stop()
  await first.core.peers.refresh()
  await until('the cores are linked', () => first.core.peers.areLinked())
})

it('a core rejects invalid announcements, and announcements without the scope', async () => {
  const { visitor, stream } = await openStream()
  const transport = createConnectTransport({ baseUrl: `http://127.0.0.1:${second.port}`, httpVersion: '2' })
  const { announceEvents } = createClient(PeerService, transport)
  const bearer = async (...scopes: string[]) => ({
    headers: { authorization: `Bearer ${await second.core.access.issue({ subject: 'core', scopes })}` },
  })
  const { conversationId } = visitor
  const event = { conversationId, sequence: 1, closed: false }
  const own = await bearer(peerScope)
  const codeOf = (request: Parameters<typeof announceEvents>[0], options = own) =>
    announceEvents({ coreId: 'another', ...request }, options).then(
      () => 'ok',
      (error) => Code[ConnectError.from(error).code],
    )
  const others = await bearer('visitors:act', 'deliveries:work', 'messages:write')
  expect(await codeOf({}, others)).toBe('PermissionDenied')
  for (const request of [
    { coreId: '' },
    { coreId: 'x'.repeat(65) },
    { events: [{ ...event, conversationId: '' }] },
    { events: [{ ...event, sequence: 0 }] },
    { events: [{ ...event, json: '{' }] },
    { events: [{ ...event, json: 'null' }] },
    { events: [{ ...event, json: '{"type":"typing.started"}' }] },
    { events: Array.from({ length: 1_001 }, () => event) },
  ])
    expect([request, await codeOf(request)]).toEqual([request, 'InvalidArgument'])
  // Valid, but no such event was written.
  expect(await codeOf({ changes: 5, events: [{ ...event, sequence: 9 }] })).toBe('ok')
  expect(await codeOf({ events: [{ ...event, sequence: 9 }] })).toBe('ok')
  await answer(first.core, visitor, 'real')
  await until('the event arrives', () => stream.sequences.length === 1)
})
