import { randomUUID } from 'node:crypto'
import { MongoClient } from 'mongodb'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { imageOf } from '../../test/support/images.ts'
import { testDatabase } from '../../test/support/test-database.ts'
import { until } from '../../test/support/until.ts'
import { site, startTestCores, type TestCores } from '../test-core-context.ts'
import type { SessionContent } from '../visitors/session-content.ts'
import { placesOfTexts, plantMarks } from './test-visitor-marks.ts'

const database = testDatabase()
const client = new MongoClient(database.uri)
let cores: TestCores
beforeAll(async () => {
  cores = await startTestCores(database, { count: 2 })
  const { core, publicSiteKey, workspaceId } = cores
  const field = { name: 'email', label: 'Mail', type: 'text', required: false, maxLength: 200 } as const
  const settings = {
    capabilities: { preChatForm: true, offlineForm: true },
    forms: { preChat: [field], offline: [field] },
  }
  await core.workspaces.updateInstallation(publicSiteKey, settings, undefined)
  const destination = { workspaceId, destinationUrl: 'https://93.184.216.34/hook', mappedFields: ['email'] }
  await core.leadSubscriptions.create({ ...destination, automatic: true }, { subject: 'desk' })
})
afterAll(async () => {
  await cores.stop()
  await client.close()
})

const plant = (kind: { verified: boolean }) => plantMarks(cores, kind)
const placesOf = (texts: string[]) => placesOfTexts(client.db(database.name), texts)

const idsOf = async ({ session, created }: Awaited<ReturnType<typeof plant>>) => {
  const found = await Promise.all([session, created].map(({ sessionId }) => cores.core.sessions.find(sessionId)))
  return found.flatMap(({ sessionId, conversationId, visitorId, identity }) => [
    sessionId,
    conversationId,
    visitorId,
    ...(identity ? [identity.subjectId] : []),
  ])
}

/** Runs every step and advances the clock in between. */
async function workThrough(core = cores.core) {
  for (const seconds of [0, 3, 61]) {
    cores.advance(seconds)
    await core.erasures.work()
  }
}

const visitorOf = ({ sessionId }: SessionContent, core = cores.core) =>
  core.visitorNames.ofSession(sessionId, undefined)

describe.each([{ verified: false }, { verified: true }])('the erasure of a visitor (%o)', (kind) => {
  it('leaves none of their data in any collection', async () => {
    const planted = await plant(kind)
    const other = await plant(kind)
    const traces = [...planted.marks, ...(await idsOf(planted)), planted.created.conversationId]
    // The scan finds the visitor's data in all of these collections.
    const before = new Set((await placesOf(traces)).map((place) => place.split(':')[0]))
    for (const name of [
      'sessions',
      'events',
      'conversations',
      'leads',
      'deliveries',
      'commands',
      'screenshots.chunks',
      'idempotency',
    ])
      expect(before).toContain(name)
    const kept = (await placesOf(other.marks)).filter(
      (place) => !place.startsWith('typing') && !place.startsWith('wakeups'),
    )

    const { erasureId } = await cores.core.erasures.begin(await visitorOf(planted.session), 'desk')
    await workThrough()
    expect(await placesOf(traces)).toEqual([])
    expect(await cores.core.erasures.find(erasureId, cores.workspaceId)).toMatchObject({
      stage: 'finished',
      requestedBy: 'desk',
    })
    expect(await placesOf(other.marks)).toEqual(expect.arrayContaining(kept))
  })

  it('is finished by another process after a death at any write', async () => {
    for (let writes = 1; ; writes += 1) {
      const planted = await plant(kind)
      const traces = [...planted.marks, ...(await idsOf(planted))]
      const visitor = await visitorOf(planted.session)
      const mortal = cores.mortalCore(writes)
      const died = await mortal.erasures
        .begin(visitor, 'desk')
        .then(() => workThrough(mortal))
        .then(() => false)
        .catch(() => true)
      // Longer than the lease of the dead process.
      for (let step = 0; step < 4; step += 1) {
        cores.advance(61)
        await cores.core.erasures.work()
      }
      expect([writes, await placesOf(traces)]).toEqual([writes, []])
      if (!died) return
    }
  }, 240_000)
})

describe('an erasure during activity of the visitor', () => {
  it('removes data that is still being written', async () => {
    const { core, cores: all } = cores
    const session = await cores.newSession()
    const { sessionId, conversationId, accessGrant } = session
    const credentials = { accessGrant, origin: site }
    const mark = randomUUID().replaceAll('-', '')
    const { content } = await core.commands.requestScreenshot({ sessionId }, { subject: 'desk' })
    const requestId = content.commandId
    const consent = { credentials, requestId, consent: 'granted', idempotencyKey: 'yes' }
    await core.commandDecisions.acknowledgeScreenshot(consent)
    const removed = Promise.withResolvers<void>()
    const upload = core.screenshots
      .upload(
        { credentials, requestId, contentType: 'image/png', idempotencyKey: 'picture' },
        (async function* () {
          yield Buffer.concat([imageOf('image/png', 100), Buffer.from(mark.repeat(20_000))])
          await removed.promise
          yield Buffer.from(mark.repeat(20_000))
        })(),
      )
      .catch((error: Error) => error)

    let rejected = 0
    const writers = [...all, ...all].map(async (at) => {
      for (let number = 0; ; number += 1) {
        const attempts = await Promise.allSettled([
          cores.send(session, `${mark} ${number}`, { core: at }),
          at.typing.setByVisitor(credentials, number % 2 === 0 ? 'started' : 'stopped'),
          at.sessions.reportPage({ credentials, pageContext: { url: `${site}/${mark}` } }),
          at.leads.submitForm({ credentials, form: 'offline', fields: { email: mark }, idempotencyKey: randomUUID() }),
          at.leads.capture(
            { workspaceId: cores.workspaceId, source: 'crm', fields: { note: mark }, conversationId },
            undefined,
          ),
          at.messages.sendAsAgent({ conversationId, clientOperationId: randomUUID(), body: mark }),
          at.messages.sendAsAgent({
            conversationId,
            clientOperationId: randomUUID(),
            body: mark,
            agent: { displayName: 'Ada' },
          }),
        ])
        if (attempts.every(({ status }) => status === 'rejected')) break
      }
      rejected += 1
    })
    await until('it is under way', async () => (await placesOf([mark])).length > 4)
    await core.erasures.begin(await visitorOf(session), 'desk')
    cores.advance(3)
    await core.erasures.work()
    await Promise.all(writers)
    expect(rejected).toBe(writers.length)
    removed.resolve()
    expect(await upload).toBeInstanceOf(Error)
    for (const each of all) await each.inbox.noted()
    cores.advance(61)
    await core.erasures.work()
    expect(await placesOf([mark, sessionId, conversationId])).toEqual([])
  })
})

describe('an erased visitor', () => {
  it('has their streams ended with session.revoked on every core, and later requests rejected', async () => {
    const [one, two] = cores.cores
    const session = await cores.newSession()
    await cores.send(session, 'hello')
    const streams = [await cores.openStream(session, one), await cores.openStream(session, two)]
    await one!.erasures.begin(await visitorOf(session), 'desk')
    for (const stream of streams) await until('the end', () => stream.ended)
    for (const { types } of streams) expect(types.at(-1)).toBe('session.revoked')
    await expect(cores.send(session, 'late', { core: one! })).rejects.toThrow('SessionRevoked')
    await until('the other core knows', () => cores.send(session, 'late', { core: two! }).catch(() => true))
    await workThrough()
    for (const core of [one!, two!])
      await until('it is gone everywhere', () =>
        cores.send(session, 'late', { core }).catch(({ message }) => message === 'GrantInvalid'),
      )
    expect(await placesOf([session.sessionId, session.conversationId])).toEqual([])
  })

  it('has a stream without an end event ended when the session is removed', async () => {
    const session = await cores.newSession()
    const stream = await cores.openStream(session)
    await until('the stream follows', () => stream)
    await cores.core.database.collections.sessions.deleteOne({ _id: session.sessionId })
    await until('the end', () => stream.ended)
    expect(stream.types).toEqual(['session.revoked'])
  })

  it('can return as a new visitor', async () => {
    const browser = randomUUID()
    const session = await cores.newSession(cores.core, browser)
    await cores.send(session, 'before')
    await cores.core.sessions.ban(session.sessionId, 'rude', undefined)
    await cores.core.erasures.begin(await visitorOf(session), 'desk')
    cores.advance(3)
    await cores.core.erasures.work()
    const again = await cores.newSession(cores.core, browser)
    await cores.send(again, 'after')
    cores.advance(61)
    await cores.core.erasures.work()
    expect(await cores.history(again)).toEqual(['after'])
  })

  it('affects neither the next person in the same browser nor an anonymous one elsewhere', async () => {
    const browser = randomUUID()
    const one = await cores.identify(await cores.newSession(cores.core, browser), cores.sign({ sub: randomUUID() }))
    await cores.send(one, 'mine')
    const sub = randomUUID()
    const two = await cores.identify(one, cores.sign({ sub }))
    await cores.send(two, 'theirs')
    const stranger = await cores.newSession()
    await cores.send(stranger, 'elsewhere')
    await cores.core.erasures.begin(await visitorOf(one), 'desk')
    await workThrough()
    expect(await cores.history(two)).toEqual(['theirs'])
    expect(await cores.history(stranger)).toEqual(['elsewhere'])
    expect(await placesOf([one.sessionId, one.conversationId])).toEqual([])
    const next = await cores.identify(await cores.newSession(), cores.sign({ sub }))
    expect(await cores.history(next)).toEqual(['theirs'])
  })

  it('can be erased by the host’s user id, and a second time without effect', async () => {
    const planted = await plant({ verified: true })
    const ids = await idsOf(planted)
    for (let times = 0; times < 2; times += 1) {
      const visitor = await cores.core.visitorNames.ofSubject(cores.workspaceId, planted.externalSubject)
      await cores.core.erasures.begin(visitor, 'desk')
      await workThrough()
      expect(await placesOf([...planted.marks, ...ids])).toEqual([])
    }
    await expect(visitorOf(planted.session)).rejects.toThrow('NotFound')
  })
})

describe('the export of a visitor', () => {
  it('has all data of the visitor and none of another as lines of JSON, without credentials', async () => {
    const planted = await plant({ verified: true })
    const other = await plant({ verified: true })
    const lines: string[] = []
    for await (const line of cores.core.visitorExport.lines(await visitorOf(planted.session))) lines.push(line)
    const records = lines.map((line) => JSON.parse(line))
    expect(new Set(records.map(({ kind }) => kind))).toEqual(
      new Set(['session', 'conversation', 'event', 'command', 'screenshot', 'lead', 'delivery']),
    )
    const all =
      lines.join('\n') + records.map(({ data }) => Buffer.from(String(data), 'base64').toString('latin1')).join()
    // Only hashes of idempotency keys and nonces are stored, and no former pages.
    const notStored =
      /^(createkey|identifykey|nonce|firstnonce|pagekey|formkey|consentkey|uploadkey|agentoperation|created|message)/
    expect(planted.marks.filter((mark) => !notStored.test(mark) && !all.includes(mark))).toEqual([])
    expect(other.marks.filter((mark) => all.includes(mark))).toEqual([])
    expect(all).not.toMatch(/renewal|inputHash|operationKey/)
  })
})
