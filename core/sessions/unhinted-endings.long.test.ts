import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { until } from '../../test/support/until.ts'
import { banSession, findSession } from '../bans/bans.ts'
import type { RunningCore } from '../context.ts'
import type { Database } from '../database/database.ts'
import { createTestCore, hasFailed, testCores } from '../test/cores.ts'
import { createScene, refusalOf, type Scene, type Way, waysToEnd } from '../test/endings.ts'
import type { TestStream } from '../test/streams.ts'

const cores = testCores()

/** Maximum time in milliseconds until the other core knows the change. */
const withinMs = 1_000

/**
 * Creates a core that dies after a change of state: it cannot write the hint. `beforeBan` runs before
 * each write of a ban.
 */
function coreThatCannotHint(beforeBan: () => Promise<unknown> = async () => {}): RunningCore {
  const { database } = cores.core
  const wakeups = new Proxy(database.collections.wakeups, {
    get(target, property) {
      const value = Reflect.get(target, property)
      if (property !== 'insertOne') return typeof value === 'function' ? value.bind(target) : value
      return async (wakeup: { changed: string[] }, options: object) => {
        if (wakeup.changed.length > 0) throw new Error('dead')
        return target.insertOne(wakeup as never, options)
      }
    },
  })
  const visitors = new Proxy(database.collections.visitors, {
    get(target, property) {
      const value = Reflect.get(target, property)
      if (property !== 'bulkWrite') return typeof value === 'function' ? value.bind(target) : value
      return async (...call: Parameters<typeof target.bulkWrite>) => {
        await beforeBan()
        return target.bulkWrite(...call)
      }
    },
  })
  const collections = { ...database.collections, wakeups, visitors } as Database['collections']
  return createTestCore({ ...database, collections, close: async () => {} }, cores.now)
}

/** Returns the time of the last write before the death. */
async function endAndDie(way: Way, scene: Scene) {
  expect(await hasFailed(way.end(coreThatCannotHint(), scene))).toBe(true)
  return performance.now()
}

// Time ends the sessions of some ways. An erasure is continued by another core.
const announced = waysToEnd(cores).filter(({ name }) => !/erased|expires|renewed|lifetime/.test(name))

// Retries, because a busy machine may take longer than a second.
describe.each(announced)('when $name and the core dies before the hint', { retry: 2 }, (way) => {
  it('streams of another core end within a second', async () => {
    const scene = await createScene(cores, way)
    const stream = await cores.openStream(scene.session)
    await until('the stream is live', stream.isLive)
    const writtenAt = await endAndDie(way, scene)
    await until('the end of the stream', () => stream.ended)
    expect(performance.now() - writtenAt).toBeLessThan(withinMs)
    if (way.event) expect(stream.types.at(-1)).toBe(way.event)
  })

  // Without a stream, no periodic check reads the session.
  it('another core refuses the cached grant within a second', async () => {
    const scene = await createScene(cores, way)
    await until('the grant is cached', async () => (await refusalOf(scene.session, cores.core)) === undefined)
    const writtenAt = await endAndDie(way, scene)
    await until('the grant is refused', async () => (await refusalOf(scene.session, cores.core)) === way.code)
    expect(performance.now() - writtenAt).toBeLessThan(withinMs)
  })
})

describe.each([{ verified: false }, { verified: true }])(
  'when a visitor (verified: $verified) is banned, a session begins before the write, and the core dies before the hint',
  { retry: 2 },
  ({ verified }) => {
    it.each([{ hasStream: true }, { hasStream: false }])(
      'another core ends this session within a second (with a stream: $hasStream)',
      async ({ hasStream }) => {
        const scene = await createScene(cores, { verified })
        const { session, sign, subject } = scene
        const { clientInstanceId } = await findSession(cores.core, session.sessionId)
        let late = session
        let stream: TestStream | undefined
        const dying = coreThatCannotHint(async () => {
          const browser = verified ? randomUUID() : clientInstanceId
          late = await cores.newSession(cores.core, browser, { ...cores, publicSiteKey: scene.publicSiteKey })
          if (verified) late = await cores.identify(late, sign(subject))
          if (hasStream) stream = await cores.openStream(late)
          await until('the grant is cached', async () => (await refusalOf(late, cores.core)) === undefined)
        })
        expect(await hasFailed(banSession(dying, session.sessionId, 'rude'))).toBe(true)
        const writtenAt = performance.now()
        expect(late).not.toBe(session)
        if (stream) await until('the end of the stream', () => stream?.ended)
        else await until('the refusal', async () => (await refusalOf(late, cores.core)) === 'VisitorBanned')
        expect(performance.now() - writtenAt).toBeLessThan(withinMs)
      },
    )
  },
)
