import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { signAssertion } from '../../test/support/assertion.ts'
import { testDatabase } from '../../test/support/test-database.ts'
import { until } from '../../test/support/until.ts'
import type { CoreContext } from '../context.ts'
import { site, startTestCores, type TestCores } from '../test-core-context.ts'
import type { SessionContent } from './session-content.ts'

const database = testDatabase()
let cores: TestCores
let here: CoreContext
let there: CoreContext
beforeAll(async () => {
  cores = await startTestCores(database, { count: 2 })
  ;[here, there] = cores.cores as [CoreContext, CoreContext]
})
afterAll(() => cores.stop())

/**
 * A session and a sibling on a site of their own. Each has a stream and a cached grant on both
 * cores.
 */
async function openScene({ verified }: Way) {
  const { connectionId } = await here.workspaces.createConnection(cores.workspaceId, 'Site', undefined)
  const { installation, identitySecret } = await here.workspaces.createInstallation(
    connectionId,
    { origins: [site, 'https://other.example'] },
    undefined,
  )
  const { publicSiteKey } = installation
  const browser = randomUUID()
  const subject = randomUUID()
  const create = async (clientInstanceId: string) => {
    const request = { publicSiteKey, origin: site, clientInstanceId, idempotencyKey: randomUUID() }
    return (await here.sessions.create(request)).content
  }
  const sign = (sub: string) =>
    signAssertion({ siteKey: publicSiteKey, ...identitySecret, now: cores.now() }, { claims: { sub } })
  const begin = async (clientInstanceId: string) => {
    const created = await create(clientInstanceId)
    return verified ? cores.identify(created, sign(subject)) : created
  }
  const session = await begin(browser)
  const sibling = await begin(verified ? randomUUID() : browser)
  const watched = []
  for (const each of [session, sibling]) {
    await until('the grant is known on both cores', () => isLiveEverywhere(each))
    watched.push({ each, streams: [await cores.openStream(each, here), await cores.openStream(each, there)] })
  }
  return { connectionId, publicSiteKey, subject, session, sibling, sign, watched }
}

type Scene = Awaited<ReturnType<typeof openScene>>

const credentialsOf = ({ accessGrant }: SessionContent) => ({ accessGrant, origin: site })

const refusalOf = (session: SessionContent, core: CoreContext) =>
  core.visitorAccess.authorize(credentialsOf(session)).then(
    () => undefined,
    ({ message }: Error) => message,
  )

async function isLiveEverywhere(session: SessionContent) {
  const refusals = await Promise.all(cores.cores.map((core) => refusalOf(session, core)))
  return refusals.every((refusal) => refusal === undefined)
}

interface Way {
  name: string
  verified?: boolean
  /** Error code of a request. */
  code: string
  /** Last event of the streams; none where an operator can allow the site again. */
  event?: string
  /** Whether the sibling ends too. */
  sibling: boolean
  end(core: CoreContext, scene: Scene): Promise<unknown>
  /** False where time or the visitor ends the session, so that no operator repeats it. */
  repeats?: false
}

const update =
  (settings: object): Way['end'] =>
  (core, { publicSiteKey }) =>
    core.workspaces.updateInstallation(publicSiteKey, settings, undefined)
const ban: Way['end'] = (core, { session }) => core.sessions.ban(session.sessionId, 'rude', undefined)

const ways: Way[] = [
  {
    name: 'the origin is taken off the installation',
    code: 'OriginNotAllowed',
    sibling: true,
    end: update({ origins: ['https://other.example'] }),
  },
  { name: 'the installation is disabled', code: 'OriginNotAllowed', sibling: true, end: update({ enabled: false }) },
  {
    name: 'the connection is disabled',
    code: 'ConnectionDisabled',
    event: 'connection.disabled',
    sibling: true,
    end: (core, { connectionId }) => core.workspaces.setConnectionStatus(connectionId, 'disabled', undefined),
  },
  {
    name: 'the session is revoked',
    code: 'SessionRevoked',
    event: 'session.revoked',
    sibling: false,
    end: (core, { session }) => core.sessions.revoke(session.sessionId, undefined),
  },
  { name: 'the browser is banned', code: 'VisitorBanned', event: 'visitor.banned', sibling: true, end: ban },
  {
    name: 'the subject is banned',
    verified: true,
    code: 'VisitorBanned',
    event: 'visitor.banned',
    sibling: true,
    end: ban,
  },
  {
    name: 'the visitor closes the session',
    code: 'SessionClosed',
    event: 'session.closed',
    sibling: false,
    repeats: false,
    end: (core, { session }) =>
      core.sessions.close({
        credentials: credentialsOf(session),
        scope: 'continuity',
        idempotencyKey: randomUUID(),
      }),
  },
  {
    name: 'the visitor identifies as another subject',
    verified: true,
    code: 'SessionClosed',
    event: 'session.closed',
    sibling: false,
    repeats: false,
    end: (core, { session, sign }) => cores.identify(session, sign(randomUUID()), { core }),
  },
  {
    name: 'the visitor logs out',
    verified: true,
    code: 'SessionClosed',
    event: 'session.closed',
    sibling: false,
    repeats: false,
    end: (core, { session }) => cores.clear(session, { core }),
  },
  {
    name: 'an anonymous visitor is erased',
    code: 'SessionRevoked',
    event: 'session.revoked',
    sibling: true,
    end: async (core, { session }) =>
      core.erasures.begin(await core.visitorNames.ofSession(session.sessionId, undefined), 'desk'),
  },
  {
    name: 'a verified visitor is erased',
    verified: true,
    code: 'SessionRevoked',
    event: 'session.revoked',
    sibling: true,
    end: async (core, { session }) =>
      core.erasures.begin(await core.visitorNames.ofSession(session.sessionId, undefined), 'desk'),
  },
  {
    name: 'a subject is erased by the host’s user id',
    verified: true,
    code: 'SessionRevoked',
    event: 'session.revoked',
    sibling: true,
    end: async (core, { subject }) =>
      core.erasures.begin(await core.visitorNames.ofSubject(cores.workspaceId, subject), 'desk'),
  },
  {
    name: 'the grant expires',
    code: 'SessionExpired',
    event: 'session.expired',
    sibling: true,
    repeats: false,
    end: async () => cores.advance(901),
  },
  {
    name: 'the session reaches its maximum lifetime',
    code: 'SessionExpired',
    event: 'session.expired',
    sibling: true,
    repeats: false,
    end: async () => cores.advance(24 * 3600 + 1),
  },
]

const withinMs = 1000

/** Expects every stream and cached grant of the session to end within a second of `began`. */
async function expectEnded({ each, streams }: Scene['watched'][number], { code, event }: Way, began: number) {
  for (const stream of streams) await until('the stream to end', () => stream.ended)
  for (const core of cores.cores) await until('the grant to be refused', () => refusalOf(each, core))
  expect(performance.now() - began).toBeLessThan(withinMs)
  for (const core of cores.cores) expect(await refusalOf(each, core)).toBe(code)
  const lasts = streams.map(({ types }) => types.at(-1))
  expect(lasts.every((last) => last === event || (event === undefined && !ends(last)))).toBe(true)
}

const ends = (type: string | undefined) => type !== undefined && /^(session|visitor|connection)\./.test(type)

async function expectOver(scene: Scene, way: Way, began: number) {
  const [own, sibling] = scene.watched
  await expectEnded(own!, way, began)
  if (way.sibling) return expectEnded(sibling!, way, began)
  expect(await isLiveEverywhere(scene.sibling)).toBe(true)
  expect(sibling!.streams.some(({ ended }) => ended)).toBe(false)
}

// A busy machine may take longer than a second. A fault fails every retry.
describe.each(ways)('when $name', { retry: 2 }, (way) => {
  it('ends streams and cached grants within a second on both cores and sends no later message', async () => {
    const scene = await openScene(way)
    const began = performance.now()
    await way.end(here, scene)
    const { conversationId } = scene.session
    const agent = { displayName: 'Ada' }
    const late = here.messages
      .sendAsAgent({ conversationId, clientOperationId: randomUUID(), body: 'too late', agent })
      .catch(() => {})
    await expectOver(scene, way, began)
    await late
    if (way.event === 'session.closed' || way.repeats === false) return
    for (const { json } of scene.watched[0]!.streams) expect(json.join()).not.toContain('too late')
  })

  if (way.repeats === false) return

  it('ends them within a second of a repeat after the first process died at any write', async () => {
    for (let writes = 1; ; writes += 1) {
      const scene = await openScene(way)
      const died = await way.end(cores.mortalCore(writes), scene).then(
        () => false,
        () => true,
      )
      // An erasure that has begun continues by itself. A second one removes the rest.
      const began = performance.now()
      await way.end(here, scene)
      await expectOver(scene, way, began)
      if (!died) return
    }
  }, 120_000)
})

describe('a change of an installation', () => {
  it('keeps open the streams of allowed sessions, without a missed message', async () => {
    const scene = await openScene({ name: '', code: '', sibling: false, end: async () => {} })
    const { conversationId } = scene.session
    const bodies = Array.from({ length: 30 }, (_, index) => `message ${index}`)
    for (const [index, body] of bodies.entries()) {
      const core = index % 2 === 0 ? here : there
      const change = core.workspaces.updateInstallation(scene.publicSiteKey, { defaultLocale: 'de' }, undefined)
      const agent = { displayName: 'Ada' }
      await core.messages.sendAsAgent({ conversationId, clientOperationId: randomUUID(), body, agent })
      await change
    }
    for (const stream of scene.watched[0]!.streams) {
      await until('every message', () => stream.json.length >= bodies.length)
      expect(stream.json.map((json) => JSON.parse(json).data.message.body)).toEqual(bodies)
      expect(stream.ended).toBe(false)
    }
  })

  it('lets a session resume its stream after its installation is enabled again', async () => {
    const scene = await openScene({ name: '', code: '', sibling: false, end: async () => {} })
    const { publicSiteKey, session, watched } = scene
    await here.workspaces.updateInstallation(publicSiteKey, { enabled: false }, undefined)
    for (const stream of watched[0]!.streams) await until('the end', () => stream.ended)
    await here.messages.sendAsAgent({
      conversationId: session.conversationId,
      clientOperationId: randomUUID(),
      body: 'meanwhile',
      agent: { displayName: 'Ada' },
    })
    await here.workspaces.updateInstallation(publicSiteKey, { enabled: true }, undefined)
    await until('it is allowed again', () => isLiveEverywhere(session))
    const stream = await cores.openStream(session, there)
    await until('the message', () => stream.json.join().includes('meanwhile'))
    expect(stream.types).toEqual(['message.received'])
  })
})
