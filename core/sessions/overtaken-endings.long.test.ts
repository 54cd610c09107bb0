import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isLong } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import type { RunningCore } from '../context.ts'
import { sendAsAgent } from '../conversations/messages.ts'
import { openDatabase } from '../database/database.ts'
import { codeOf, createTestCore, testCores } from '../test/cores.ts'
import { createScene, refusalOf, type Way, waysToEnd } from '../test/endings.ts'
import type { Nudge } from '../wakeups/wakeup-store.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'

const cores = testCores()

/** A nudge that never comes. Its core reads wake-ups every 200 ms only. */
const noNudge: Nudge = { pass() {}, onPassed() {}, announce() {}, count: () => 0, after: () => delay(200) }

/** A core that learns of other cores' changes late, as on another machine. */
let late: RunningCore

beforeAll(async () => {
  late = createTestCore(
    await openDatabase({ uri: cores.uri, name: cores.name, timeoutMs: 5000 }),
    cores.now,
    {},
    noNudge,
  )
  late.start()
  await until('both cores are current', () => wakeupsOf(late).isCurrent() && wakeupsOf(cores.core).isCurrent())
})
afterAll(() => late.stop())

const rounds = isLong ? 8 : 1

async function openScene(way: Pick<Way, 'verified'>) {
  const scene = await createScene(cores, way)
  await until('the late core accepts the grant', async () => (await refusalOf(scene.session, late)) === undefined)
  const stream = await cores.openStream(scene.session, late)
  await until('the stream is live', stream.isLive)
  return { ...scene, stream }
}

const answerVia = (core: RunningCore, conversationId: string) =>
  sendAsAgent(core, {
    conversationId,
    clientOperationId: randomUUID(),
    body: 'too late',
    agent: { displayName: 'Ada' },
  })

// Excludes the ways in which a session or grant expires, because they have no call with an answer.
describe.each(waysToEnd(cores).filter(({ name }) => !/expires|renewed|lifetime/.test(name)))('when $name', (way) => {
  it('no message that another core writes after the answer reaches a stream of that core', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const scene = await openScene(way)
      await way.end(cores.core, scene)
      await answerVia(late, scene.session.conversationId).catch(() => {})
      await until('the end', () => scene.stream.ended)
      expect(scene.stream.json.join()).not.toContain('too late')
    }
  })

  it('a request at another core after the answer is refused', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const scene = await openScene(way)
      await way.end(cores.core, scene)
      expect(await refusalOf(scene.session, late)).toBe(way.code)
      expect(await codeOf(cores.send(scene.session, 'too late', { core: late }))).not.toBe('ok')
    }
  })
})
