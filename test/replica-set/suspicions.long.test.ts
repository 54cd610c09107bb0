import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { expect, it } from 'vitest'
import { createBus } from '../../core/bus.ts'
import { applyStates } from '../../core/conversations/message-states.ts'
import { openDatabase } from '../../core/database/database.ts'
import { retryAtStart } from '../../core/database/start-retries.ts'
import { leadFanOutOf } from '../../core/deliveries/lead-capture.ts'
import { createEventStore } from '../../core/log/event-store.ts'
import type { LogEvent } from '../../core/log-event.ts'
import { partsOfObject } from '../../core/privacy/deletions.ts'
import { bareCore } from '../../core/test/core-with.ts'
import { createWakeupStore } from '../../core/wakeups/wakeup-store.ts'
import { atFileEnd } from '../support/clean-up.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { openDouble } from './open-double.ts'

const { uri } = testDatabase()
const timeoutMs = 5_000

/** Opens an empty database on a new double. */
async function start() {
  const { set, name } = await openDouble(uri)
  const settings = { uri: set.uri, name, timeoutMs }
  const database = await openDatabase(settings)
  atFileEnd(() => database.close())
  return { set, settings, database }
}

const event = (conversationId: string, sequence: number): LogEvent => ({
  conversationId,
  sequence,
  type: 'message.accepted',
  occurredAt: new Date(0),
})

it('starts while a member is stopped and an index of a collection with documents is missing', async () => {
  const { set, settings, database } = await start()
  const { sessions } = database.collections
  await sessions.insertOne({ _id: 's_1' } as never)
  await sessions.dropIndex('by_visitor')
  await set.stop(set.secondaries()[0]!)
  await (await openDatabase({ ...settings, timeoutMs: 1_000 })).close()
  expect(await sessions.indexExists('by_visitor')).toBe(true)
})

it('starts although the build of an index takes longer than the socket timeout', async () => {
  const { set, settings, database } = await start()
  const { sessions } = database.collections
  await sessions.insertMany(Array.from({ length: 30 }, (_, index) => ({ _id: `s_${index}` })) as never)
  await sessions.dropIndex('by_visitor')
  set.faults.msPerDocument = 50
  await (await openDatabase({ ...settings, timeoutMs: 1_000 })).close()
})

it('removes the visitors of a deleted connection in groups that end before the socket timeout', async () => {
  const { set, database } = await start()
  const { visitors, connections } = database.collections
  const inConnection = { workspaceId: 'ws_1', connectionId: 'con_1' }
  await connections.insertOne({ _id: 'con_1', workspaceId: 'ws_1' } as never)
  await visitors.insertMany(Array.from({ length: 60 }, (_, index) => ({ _id: `v_${index}`, ...inConnection })) as never)
  const parts = await partsOfObject(bareCore({ db: database.collections, database }), {
    kind: 'connection',
    id: 'con_1',
    workspaceId: 'ws_1',
  })
  set.faults.msPerDocument = 100
  for (const part of parts) while ((await part.remove(20)) > 0);
  expect(await visitors.countDocuments()).toBe(0)
})

it('sets the states of messages although the primary steps down', async () => {
  const { set, database } = await start()
  const events = createEventStore(database.collections)
  await events.insert([{ ...event('cnv_1', 1), type: 'message.received', message: { state: 'delivered' } as never }])
  set.faults.inNext({ when: 'before', error: 'NotWritablePrimary', matches: (command) => command === 'update' })
  const receipt = { ...event('cnv_1', 2), messageSequence: 1, data: { state: 'read' as const } }
  await applyStates({ db: database.collections }, [receipt])
  expect((await events.readAfter({ conversationId: 'cnv_1', after: 0 }, 1))[0]?.currentState).toBe('read')
  expect(set.faults.happened).toBe(1)
})

it('makes no deliveries of a lead that no majority has', async () => {
  const { set, database } = await start()
  const { leads } = database.collections
  await set.holdBack(set.secondaries())
  const fanOut = { subscriptionIds: [], since: new Date(0) }
  const lead = { _id: 'lead_1', workspaceId: 'ws_1', fields: {}, createdAt: new Date(0), fanOut }
  await leads.insertOne(lead as never, { writeConcern: { w: 1 } })
  const core = bareCore({ db: database.collections, database, now: Date.now, bus: createBus() })
  const job = leadFanOutOf(core)
  await job.run()
  expect(await leads.findOne({ _id: 'lead_1' })).toHaveProperty('fanOut')
  await set.catchUp()
  await job.run()
  expect(await leads.findOne({ _id: 'lead_1' })).not.toHaveProperty('fanOut')
})

it.each(['FailedToSatisfyReadPreference', 'NetworkInterfaceExceededTimeLimit', 'WriteConcernFailed'] as const)(
  'a core that starts while a server reports %s tries again',
  async (error) => {
    const { set, settings } = await start()
    const matches = (command: string) => command === 'createIndexes'
    // The driver itself repeats a command once.
    set.faults.inNext({ when: 'before', error, matches, times: 2 })
    const options = { logger: pino({ level: 'silent' }), withinMs: 30_000 }
    const database = await retryAtStart(() => openDatabase(settings), options)
    await database.close()
    expect(set.faults.happened).toBe(2)
  },
)

it('loses no wake-ups while both secondaries are late', async () => {
  const { set, database } = await start()
  const wakeups = createWakeupStore(database.collections)
  const stopped = new AbortController()
  const seen: string[] = []
  let ended = false
  const following = (async () => {
    const reader = {
      from: 'reader',
      kids: [],
      signal: stopped.signal,
      now: Date.now,
      monotonic: () => performance.now(),
    }
    for await (const each of wakeups.follow(reader))
      if ('asOf' in each) seen.push('current')
      else seen.push(...each.changed)
    ended = true
  })()
  await until('a beat', () => seen.includes('current'))
  const late = set.secondaries()
  await set.holdBack(late)
  const published = wakeups.publish({ from: 'other', heads: [], changed: ['a'], at: new Date() })
  // The longest lag that the product must bear is not bounded: it only waits.
  await delay(3_000)
  expect(ended).toBe(false)
  await set.catchUp()
  await published
  await until('the change', () => seen.includes('a'))
  seen.length = 0
  await until('a beat', () => seen.includes('current'))
  expect(ended).toBe(false)
  stopped.abort()
  await following.catch(() => {})
})
