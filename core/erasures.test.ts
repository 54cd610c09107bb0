import { randomUUID } from 'node:crypto'
import { MongoClient } from 'mongodb'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { imageOf } from '../test/support/images.ts'
import { testDatabase } from '../test/support/test-database.ts'
import { until } from '../test/support/until.ts'
import type { SessionContent } from './session-content.ts'
import { site, startTestCores, type TestCores } from './test-core-context.ts'

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

/** Everything that a visitor can fill with something of their own, filled with a mark that is nowhere else. */
async function plant({ verified }: { verified: boolean }) {
  const { core, workspaceId } = cores
  const marks: string[] = []
  const mark = (name: string) => {
    const text = `${name}${randomUUID().replaceAll('-', '')}`
    marks.push(text)
    return text
  }
  const page = (name: string) => ({
    url: `https://shop.example/${mark(`${name}url`)}`,
    title: mark(`${name}title`),
    referrer: `https://${mark(`${name}r`)}.example/path`,
  })
  const { content: created } = await core.sessions.create({
    publicSiteKey: cores.publicSiteKey,
    origin: site,
    clientInstanceId: mark('browser'),
    locale: 'gsw-CH',
    pageContext: page('created'),
    idempotencyKey: mark('createkey'),
  })
  let session = created
  const externalSubject = mark('sub')
  const claims = { sub: externalSubject, name: mark('name'), ctx: { [mark('key')]: mark('value') }, jti: mark('nonce') }
  if (verified) {
    // A first session of the person's, so that this one is moved to its conversation.
    const first = await cores.identify(await cores.newSession(), cores.sign({ ...claims, jti: mark('firstnonce') }))
    await cores.send(first, mark('elsewhere'))
    session = await cores.identify(created, cores.sign(claims), { key: mark('identifykey') })
  }
  const { sessionId, conversationId, accessGrant } = session
  const credentials = { accessGrant, origin: site }
  await core.messages.sendAsVisitor({
    credentials,
    clientOperationId: mark('operation'),
    body: mark('body'),
    contentType: 'text',
    pageContext: page('message'),
  })
  await core.messages.sendAsAgent({ conversationId, clientOperationId: mark('agentoperation'), body: mark('answer') })
  await core.sessions.reportPage({ credentials, pageContext: page('report'), idempotencyKey: mark('pagekey') })
  await core.typing.setByVisitor(credentials, 'started')
  for (const form of ['preChat', 'offline'] as const)
    await core.leads.submitForm({ credentials, form, fields: { email: mark(form) }, idempotencyKey: mark('formkey') })
  await core.leads.capture({ workspaceId, source: 'crm', fields: { note: mark('note') }, conversationId }, undefined)
  const desk = { subject: 'desk' }
  const { content: asked } = await core.commands.requestScreenshot({ sessionId, purpose: mark('purpose') }, desk)
  const requestId = asked.commandId
  const consent = { credentials, requestId, consent: 'granted', idempotencyKey: mark('consentkey') }
  await core.commandDecisions.acknowledgeScreenshot(consent)
  const image = Buffer.concat([imageOf('image/png', 100), Buffer.from(mark('pixels').repeat(3000))])
  const upload = { credentials, requestId, contentType: 'image/png', idempotencyKey: mark('uploadkey') }
  await core.screenshots.upload(
    upload,
    (async function* () {
      yield image
    })(),
  )
  await core.commands.requestNavigation({ sessionId, url: `${site}/${mark('target')}` }, desk)
  return { session, created, externalSubject, marks }
}

/** Where a text is, whichever form it is kept in, over every document of every collection. */
async function placesOf(texts: string[]): Promise<string[]> {
  const db = client.db(database.name)
  const needles = texts.flatMap((text) => [Buffer.from(text), Buffer.from(Buffer.from(text).toString('base64'))])
  const places = new Set<string>()
  for (const { name } of await db.listCollections().toArray()) {
    const documents = (await db.collection(name).find({}, { raw: true }).toArray()) as unknown as Buffer[]
    for (const bytes of documents) {
      for (const [index, needle] of needles.entries())
        if (bytes.includes(needle)) places.add(`${name}: ${texts[index >> 1]}`)
    }
  }
  return [...places]
}

const idsOf = async ({ session, created }: Awaited<ReturnType<typeof plant>>) => {
  const found = await Promise.all([session, created].map(({ sessionId }) => cores.core.sessions.find(sessionId)))
  return found.flatMap(({ sessionId, conversationId, visitorId, identity }) => [
    sessionId,
    conversationId,
    visitorId,
    ...(identity ? [identity.subjectId] : []),
  ])
}

/** Every step, with the time between them gone. */
async function workThrough(core = cores.core) {
  for (const seconds of [0, 3, 61]) {
    cores.advance(seconds)
    await core.erasures.work()
  }
}

const visitorOf = ({ sessionId }: SessionContent, core = cores.core) =>
  core.visitorNames.ofSession(sessionId, undefined)

describe.each([{ verified: false }, { verified: true }])('the erasure of a visitor (%o)', (kind) => {
  it('leaves nothing of them in any collection', async () => {
    const planted = await plant(kind)
    const other = await plant(kind)
    const traces = [...planted.marks, ...(await idsOf(planted)), planted.created.conversationId]
    // What is kept at all is found by the scan: in messages, sessions, leads, deliveries, commands and screenshots.
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

  it('is finished by another process, whichever write was its last', async () => {
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
      // Longer than its process is taken to be alive.
      for (let step = 0; step < 4; step += 1) {
        cores.advance(61)
        await cores.core.erasures.work()
      }
      expect([writes, await placesOf(traces)]).toEqual([writes, []])
      if (!died) return
    }
  }, 240_000)
})

describe('an erased visitor', () => {
  it('sees the streams end as the contract has it, on every core, and is refused from then on', async () => {
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

  it('has a stream that missed its end ended when the session is gone', async () => {
    const session = await cores.newSession()
    const stream = await cores.openStream(session)
    await until('the stream follows', () => stream)
    await cores.core.database.collections.sessions.deleteOne({ _id: session.sessionId })
    await until('the end', () => stream.ended)
    expect(stream.types).toEqual(['session.revoked'])
  })

  it('may come back, and is somebody new', async () => {
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

  it('takes nobody along: not the next person in the same browser, and not an anonymous one elsewhere', async () => {
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

  it('is the same by the host’s own id, and a second time does no harm', async () => {
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
  it('has everything that they filled in and nothing of another, as lines of JSON without a credential', async () => {
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
    // Idempotency keys and nonces are kept as hashes, and a page that was left is not kept.
    const unkept =
      /^(createkey|identifykey|nonce|firstnonce|pagekey|formkey|consentkey|uploadkey|agentoperation|created|message)/
    expect(planted.marks.filter((mark) => !unkept.test(mark) && !all.includes(mark))).toEqual([])
    expect(other.marks.filter((mark) => all.includes(mark))).toEqual([])
    expect(all).not.toMatch(/renewal|inputHash|operationKey/)
  })
})
