import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { isLong, itLong, someOf } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import type { RunningCore } from '../context.ts'
import { sendAsAgent } from '../conversations/messages.ts'
import { hasFailed, testCores } from '../test/cores.ts'
import { createScene, refusalOf, type Way, waysToEnd } from '../test/endings.ts'
import { clientsOf } from '../test/operator-clients.ts'
import { updateInstallation } from '../workspaces/workspaces.ts'
import type { SessionContent } from './model.ts'

const cores = testCores({ count: 2 })

/** Creates sessions. On both cores, opens a stream for each session and caches its grant. */
async function openScene(way: Pick<Way, 'verified'>) {
  const scene = await createScene(cores, way)
  const watched = []
  for (const each of [scene.session, scene.sibling]) {
    await until('the grant is known on both cores', () => isLiveEverywhere(each))
    watched.push({ each, streams: [await cores.openStream(each), await cores.openStream(each, cores.other)] })
  }
  return { ...scene, watched }
}

type WatchedScene = Awaited<ReturnType<typeof openScene>>

async function isLiveEverywhere(session: SessionContent) {
  const refusals = await Promise.all(cores.cores.map((core) => refusalOf(session, core)))
  return refusals.every((refusal) => refusal === undefined)
}

const withinMs = 1000

/** Expects every stream and cached grant of the session to end within a second of `began`. */
async function expectEnded({ each, streams }: WatchedScene['watched'][number], { code, event }: Way, began: number) {
  for (const stream of streams) await until('the stream to end', () => stream.ended)
  for (const core of cores.cores) await until('the grant to be refused', () => refusalOf(each, core))
  expect(performance.now() - began).toBeLessThan(withinMs)
  for (const core of cores.cores) expect(await refusalOf(each, core)).toBe(code)
  const lasts = streams.map(({ types }) => types.at(-1))
  expect(lasts.every((last) => last === event || (event === undefined && !ends(last)))).toBe(true)
}

const ends = (type: string | undefined) => type !== undefined && /^(session|visitor|connection)\./.test(type)

async function expectOver(scene: WatchedScene, way: Way, began: number) {
  const [own, sibling] = scene.watched
  await expectEnded(own!, way, began)
  if (way.sibling) return expectEnded(sibling!, way, began)
  expect(await isLiveEverywhere(scene.sibling)).toBe(true)
  expect(sibling!.streams.some(({ ended }) => ended)).toBe(false)
}

/** Maps the error code of a session's requests to the session state that operators see. */
const states: Record<string, string> = {
  OriginNotAllowed: 'active',
  GrantExpired: 'active',
  ConnectionDisabled: 'closed',
  SessionRevoked: 'revoked',
  VisitorBanned: 'banned',
  SessionClosed: 'closed',
  SessionExpired: 'expired',
}

async function stateOf(core: RunningCore, { sessionId }: SessionContent) {
  const { sessions } = await clientsOf(core, cores.workspaceId)
  return (await sessions.getSession({ sessionId })).session?.state
}

// Retries, because a busy machine may take longer than a second.
describe.each(someOf(waysToEnd(cores), 5))('when $name', { retry: 2 }, (way) => {
  it('streams and cached grants end within a second on both cores, and no later message is sent', async () => {
    const scene = await openScene(way)
    const began = performance.now()
    await way.end(cores.core, scene)
    const { conversationId } = scene.session
    const agent = { displayName: 'Ada' }
    const late = sendAsAgent(cores.core, {
      conversationId,
      clientOperationId: randomUUID(),
      body: 'too late',
      agent,
    }).catch(() => {})
    await expectOver(scene, way, began)
    await late
    for (const core of cores.cores) expect(await stateOf(core, scene.session)).toBe(states[way.code])
    if (way.event === 'session.closed' || way.repeats === false) return
    for (const { json } of scene.watched[0]!.streams) expect(json.join()).not.toContain('too late')
  })

  if (way.repeats === false) return

  itLong(
    'a repeat of the action ends streams and grants within a second, no matter at which write the first core died',
    async () => {
      await cores.untilOneSurvives(
        async (mortal) => {
          const scene = await openScene(way)
          const died = await hasFailed(way.end(mortal, scene))
          // If the way is an erasure, the interrupted erasure may already be stored. Another
          // core then continues it, and the second erasure removes only the rest.
          const began = performance.now()
          await way.end(cores.core, scene)
          await expectOver(scene, way, began)
          return died
        },
        { every: 8 },
      )
    },
  )
})

describe('a change of an installation', () => {
  itLong('does not end streams that are still allowed, and these streams receive every message', async () => {
    const scene = await openScene({})
    const { conversationId } = scene.session
    const bodies = Array.from({ length: isLong ? 30 : 8 }, (_, index) => `message ${index}`)
    for (const [index, body] of bodies.entries()) {
      const core = index % 2 === 0 ? cores.core : cores.other
      const change = updateInstallation(core, scene.publicSiteKey, { defaultLocale: 'de' }, undefined)
      const agent = { displayName: 'Ada' }
      await sendAsAgent(core, { conversationId, clientOperationId: randomUUID(), body, agent })
      await change
    }
    for (const stream of scene.watched[0]!.streams) {
      await until('every message', () => stream.json.length >= bodies.length)
      expect(stream.json.map((json) => JSON.parse(json).data.message.body)).toEqual(bodies)
      expect(stream.ended).toBe(false)
    }
  })

  it('lets a session resume its stream after its installation is enabled again', async () => {
    const scene = await openScene({})
    const { publicSiteKey, session, watched } = scene
    await updateInstallation(cores.core, publicSiteKey, { enabled: false }, undefined)
    for (const stream of watched[0]!.streams) await until('the end', () => stream.ended)
    await sendAsAgent(cores.core, {
      conversationId: session.conversationId,
      clientOperationId: randomUUID(),
      body: 'meanwhile',
      agent: { displayName: 'Ada' },
    })
    await updateInstallation(cores.core, publicSiteKey, { enabled: true }, undefined)
    await until('it is allowed again', () => isLiveEverywhere(session))
    const stream = await cores.openStream(session, cores.other)
    await until('the message', () => stream.json.join().includes('meanwhile'))
    expect(stream.types).toEqual(['message.received'])
  })
})
