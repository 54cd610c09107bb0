import { MongoClient } from 'mongodb'
import { pino } from 'pino'
import { afterAll, expect, it, onTestFinished, vi } from 'vitest'
import { type FaultyProxy, startFaultyProxy } from '../../test/support/faulty-proxy.ts'
import { isLong } from '../../test/support/is-long.ts'
import { isEngine, testDatabase } from '../../test/support/test-database.ts'
import { until } from '../../test/support/until.ts'
import { createBus } from '../bus.ts'
import { collectionsOf } from '../database/collections.ts'
import { createKeyring } from '../keys/keyring.ts'
import { createCoreMetrics } from '../metrics.ts'
import { bareCore } from '../test/core-with.ts'
import { openTestDatabase } from '../test/open-test-database.ts'
import { processIdOf, wakeupStoreOf, wakeupsOf } from './wakeups.ts'

const testing = testDatabase()
const { uri, name } = testing
const closing: (() => Promise<unknown>)[] = []
afterAll(async () => {
  for (const close of closing.reverse()) await close()
})

/** Starts the wake-ups of a core over a database connection that the test can slow down. */
async function startWakeups() {
  await (await openTestDatabase({ uri, name })).close()
  const proxy: FaultyProxy = await startFaultyProxy(decodeURIComponent(new URL(uri).hostname))
  const options = { ignoreUndefined: true }
  const client = await MongoClient.connect(`mongodb://127.0.0.1:${proxy.port}/?directConnection=true`, options)
  const received: string[] = []
  const bus = createBus()
  bus.on('changed', (changed) => void received.push(...changed))
  const core = bareCore({
    db: collectionsOf(client.db(name)),
    keyring: createKeyring([{ kid: 'k1', secret: new Uint8Array(32) }]),
    bus,
    logger: pino({ level: 'silent' }),
    metrics: createCoreMetrics(),
    now: Date.now,
  })
  processIdOf.set(core, 'this')
  const wakeups = wakeupsOf(core)
  wakeups.start()
  closing.push(
    () => proxy.close(),
    () => client.close(),
    () => wakeups.stop(),
  )
  return { wakeups, bus, proxy, received, publish: wakeupStoreOf(core).publish }
}

// The proxy stands before the socket of the engine.
const itWithEngine = it.skipIf(!isEngine(testing))
const longWithEngine = isLong ? itWithEngine : it.skip

longWithEngine('`isCurrent` is false while reads of wake-ups take longer than a second', async () => {
  const { wakeups, proxy, received, publish } = await startWakeups()
  await until('it is current', () => wakeups.isCurrent())
  // Delay each direction by 600 ms.
  proxy.slow(600)
  await until('it is no longer current', () => !wakeups.isCurrent())
  const seen = new Set<boolean>()
  for (let round = 0; round < 3; round += 1) {
    const id = `ses_${round}`
    await publish({ from: 'another', heads: [], changed: [id], at: new Date() })
    await until('the change arrives', () => {
      seen.add(wakeups.isCurrent())
      return received.includes(id)
    })
  }
  expect([...seen]).toEqual([false])
  proxy.mend()
  await until('it is current again', () => wakeups.isCurrent())
})

itWithEngine('`current` is emitted each time when streams may send again', async () => {
  const { wakeups, bus, received, publish } = await startWakeups()
  // Only the test moves this clock, so that a busy machine causes no lapse.
  let now = performance.now()
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now)
  onTestFinished(() => clock.mockRestore())
  const emitted: boolean[] = []
  bus.on('current', () => emitted.push(wakeups.maySend()))
  await until('streams may send', () => wakeups.maySend())
  for (let lapse = 2; lapse <= 3; lapse += 1) {
    // Reads between two lapses emit nothing.
    now += 300
    await publish({ from: 'another', heads: [], changed: [`ses_${lapse}`], at: new Date() })
    await until('a wake-up is read', () => received.includes(`ses_${lapse}`))
    now += 900
    expect(wakeups.maySend()).toBe(false)
    await until('streams may send again', () => wakeups.maySend())
    expect(emitted).toEqual(Array(lapse).fill(true))
  }
})

itWithEngine('a routine check is answered, and a core knows that it runs alone, while wake-ups are read', async () => {
  const { wakeups, proxy } = await startWakeups()
  await until('wake-ups are read', () => wakeups.isCurrent(true) && wakeups.isAlone())
  proxy.slow(5_000)
  await until('contact is lost', () => !wakeups.isCurrent(true) && !wakeups.isAlone())
  proxy.mend()
  await until('it is in contact again', () => wakeups.isCurrent(true))
})
