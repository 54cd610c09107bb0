import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { isLong } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import type { RunningCore } from '../context.ts'
import { deleteObject } from '../privacy/deletions.ts'
import { eraseVisitor } from '../privacy/erasures.ts'
import { runDueRemovals } from '../privacy/removals.ts'
import { codeOf, hasFailed, newSubject, testCores } from '../test/cores.ts'
import { finishErasures, visitorOf } from '../test/visitor-marks.ts'
import { createSession } from '../visitors/sessions.ts'
import { banOf, banSession, findSession, unbanSession, unbanSubject } from './bans.ts'

const cores = testCores({ count: 2 })

type Site = Awaited<ReturnType<typeof cores.newSite>>
let first: Site
let second: Site
let foreign: Site

beforeAll(async () => {
  first = await cores.newSite()
  second = await cores.newSite({}, first.workspaceId)
  foreign = await cores.newSite()
})

const begin = (at: Site, { browser = randomUUID() as string, core = cores.core } = {}) =>
  cores.newSession(core, browser, at)

async function identify(at: Site, sub: string, options: { browser?: string; core?: RunningCore } = {}) {
  return cores.identify(await begin(at, options), at.sign({ sub }), options)
}

/** Erases the visitor of a session. Resolves when the erasure has finished. */
async function erase(session: Parameters<typeof visitorOf>[1]) {
  await eraseVisitor(cores.core, await visitorOf(cores, session), 'desk')
  await finishErasures(cores, cores.core)
}

describe('a ban of a verified visitor', () => {
  it('refuses the subject on each connection of the workspace, on both cores, and not in another workspace', async () => {
    const sub = newSubject()
    await banSession(cores.core, (await identify(first, sub)).sessionId, 'rude')
    const later = await cores.newSite({}, first.workspaceId)
    for (const core of cores.cores) {
      for (const at of [first, second, later]) expect(await codeOf(identify(at, sub, { core }))).toBe('VisitorBanned')
      expect(await codeOf(identify(foreign, sub, { core }))).toBe('ok')
      expect(await codeOf(identify(second, newSubject(), { core }))).toBe('ok')
    }
  })

  it('ends the live sessions of the subject on the other connections, and their streams', async () => {
    const sub = newSubject()
    const session = await identify(first, sub)
    const elsewhere = await identify(second, sub)
    const stranger = await identify(foreign, sub)
    const streams = await Promise.all(cores.cores.map((core) => cores.openStream(elsewhere, core)))
    await banSession(cores.core, session.sessionId, 'rude')
    for (const core of cores.cores) {
      await until('the refusal', async () => (await codeOf(cores.send(elsewhere, 'x', { core }))) === 'VisitorBanned')
      expect(await codeOf(cores.send(stranger, 'x', { core }))).toBe('ok')
    }
    for (const stream of streams) {
      await until('the end', () => stream.ended)
      expect(stream.types.at(-1)).toBe('visitor.banned')
    }
  })

  it('refuses the browser on each connection of the workspace, and not in another workspace', async () => {
    const browser = randomUUID()
    await banSession(cores.core, (await begin(first, { browser })).sessionId, 'rude')
    expect(await codeOf(begin(first, { browser }))).toBe('VisitorBanned')
    expect(await codeOf(begin(second, { browser, core: cores.other }))).toBe('VisitorBanned')
    expect(await codeOf(begin(foreign, { browser }))).toBe('ok')
  })

  it('is lifted on all connections by an unban of a session on another connection', async () => {
    const sub = newSubject()
    const [session, elsewhere] = [await identify(first, sub), await identify(second, sub)]
    await banSession(cores.core, session.sessionId, 'rude')
    expect(await banOf(cores.core, await findSession(cores.core, elsewhere.sessionId))).toEqual({
      visitorBanned: true,
    })
    await unbanSession(cores.core, elsewhere.sessionId)
    for (const at of [first, second]) expect(await codeOf(identify(at, sub))).toBe('ok')
  })

  it('survives the deletion of the connection on which it was set', async () => {
    const sub = newSubject()
    const doomed = await cores.newSite({}, first.workspaceId)
    await banSession(cores.core, (await identify(doomed, sub)).sessionId, 'rude')
    await deleteObject(cores.core, 'connection', doomed.connectionId, doomed.workspaceId)
    const { collections } = cores.core.database
    await until('the deletion', async () => {
      cores.advance(61)
      await runDueRemovals(cores.core)
      return (await collections.connections.countDocuments({ _id: doomed.connectionId })) === 0
    })
    expect(await codeOf(identify(second, sub))).toBe('VisitorBanned')
  })

  it('holds on each connection after a repeat, no matter at which write the first process died', async () => {
    await cores.untilOneSurvives(async (mortal) => {
      const sub = newSubject()
      const [session, elsewhere] = [await identify(first, sub), await identify(second, sub)]
      const died = await hasFailed(banSession(mortal, session.sessionId, 'rude'))
      await banSession(cores.core, session.sessionId, 'rude')
      for (const core of cores.cores) {
        await until('the refusal', async () => (await codeOf(cores.send(elsewhere, 'x', { core }))) !== 'ok')
        expect(await codeOf(cores.send(elsewhere, 'x', { core }))).toBe('VisitorBanned')
        for (const at of [first, second]) expect(await codeOf(identify(at, sub, { core }))).toBe('VisitorBanned')
      }
      return died
    })
  })
})

describe('a ban and a login on another connection at the same time', () => {
  it('leave no live session, whichever comes first', async () => {
    for (let index = 0; index < (isLong ? 60 : 15); index += 1) {
      const sub = newSubject()
      const [session, anonymous] = [await identify(first, sub), await begin(second)]
      const [login] = await Promise.all([
        cores.identify(anonymous, second.sign({ sub }), { core: cores.other }).catch(() => undefined),
        new Promise((resolve) => setTimeout(resolve, index % 15)).then(() =>
          banSession(cores.core, session.sessionId, 'rude'),
        ),
      ])
      if (!login) continue
      await until('the refusal', async () => (await codeOf(cores.send(login, 'x'))) === 'VisitorBanned')
    }
  })
})

describe('an erasure of a banned visitor', () => {
  it('keeps the bans of the subject, the browser and the address, and removes the reason', async () => {
    const [sub, browser, clientAddress] = [newSubject(), randomUUID(), '93.184.219.7']
    const { content } = await createSession(cores.core, {
      publicSiteKey: first.publicSiteKey,
      origin: (await findSession(cores.core, (await begin(first)).sessionId)).origin,
      clientInstanceId: browser,
      clientAddress,
      idempotencyKey: randomUUID(),
    })
    const session = await cores.identify(content, first.sign({ sub }))
    await banSession(cores.core, session.sessionId, 'rude to Ada', undefined, 3600)
    await erase(session)
    const { collections } = cores.core.database
    expect(await collections.sessions.countDocuments({ 'identity.externalSubject': sub })).toBe(0)
    expect(await collections.visitors.countDocuments({ banReason: 'rude to Ada' })).toBe(0)
    for (const core of cores.cores) {
      for (const at of [first, second]) {
        expect(await codeOf(identify(at, sub, { core }))).toBe('VisitorBanned')
        expect(await codeOf(begin(at, { browser, core }))).toBe('VisitorBanned')
      }
    }
    expect(await collections.networkBans.countDocuments({ endsAt: { $gt: new Date(cores.now()) } })).toBe(1)
  })

  it('leaves a ban that an operator can lift by the subject', async () => {
    const sub = newSubject()
    const session = await identify(first, sub)
    await banSession(cores.core, session.sessionId, 'rude')
    await erase(session)
    await unbanSubject(cores.core, foreign.workspaceId, sub)
    expect(await codeOf(identify(first, sub))).toBe('VisitorBanned')
    await unbanSubject(cores.core, first.workspaceId, sub)
    for (const at of [first, second]) expect(await codeOf(identify(at, sub))).toBe('ok')
  })
})
