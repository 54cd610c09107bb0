import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { MongoClient } from 'mongodb'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { testDatabase } from '../../test/support/test-database.ts'
import { until } from '../../test/support/until.ts'
import type { CoreContext } from '../context.ts'
import { startTestCores, type TestCores } from '../test-core-context.ts'
import type { SessionContent } from '../visitors/session-content.ts'
import { placesOfTexts } from './test-visitor-marks.ts'

const database = testDatabase()
const client = new MongoClient(database.uri)
let cores: TestCores
beforeAll(async () => {
  cores = await startTestCores(database)
})
afterAll(async () => {
  await cores.stop()
  await client.close()
})

const placesOf = (texts: string[]) => placesOfTexts(client.db(database.name), texts)

/** A verified person who wrote in one browser, anonymously and after login. */
async function newPerson() {
  const sub = randomUUID()
  const browser = randomUUID()
  const mark = randomUUID().replaceAll('-', '')
  const anonymous = await cores.newSession(cores.core, browser)
  await cores.send(anonymous, `${mark} before the login`)
  const session = await cores.identify(await cores.newSession(cores.core, browser), cores.sign({ sub }))
  await cores.send(session, `${mark} after it`)
  const { visitorId } = await cores.core.sessions.find(session.sessionId)
  const old = [mark, anonymous.sessionId, anonymous.conversationId, session.sessionId, session.conversationId]
  return { sub, browser, visitorId, old, visitor: await cores.core.visitorNames.ofSubject(cores.workspaceId, sub) }
}

type Person = Awaited<ReturnType<typeof newPerson>>

/** An acknowledged message of a person who returned. */
interface Acknowledged {
  session: SessionContent
  body: string
}

const ways = [
  'anonymous in the same browser',
  'signed in, in the same browser',
  'signed in, in another browser',
] as const
type Way = (typeof ways)[number]

/** The person returns and sends a message. */
async function returnAs({ sub, browser }: Person, way: Way, core = cores.core): Promise<Acknowledged> {
  const created = await cores.newSession(core, way === 'signed in, in another browser' ? randomUUID() : browser)
  const isAnonymous = way === 'anonymous in the same browser'
  const session = isAnonymous ? created : await cores.identify(created, cores.sign({ sub }), { core })
  const body = `back ${randomUUID()}`
  await cores.send(session, body, { core })
  return { session, body }
}

/**
 * Runs every step of every erasure and advances the clock in between. The leases of dead owners
 * expire too.
 */
async function workThrough(core = cores.core) {
  for (const seconds of [0, 3, 31, 3, 61, 3, 61]) {
    cores.advance(seconds)
    await core.erasures.work()
  }
}

const turnOf = (scheduler: fc.Scheduler, name: string) => (_: number, label: string) =>
  scheduler.schedule(Promise.resolve(), `${name}: ${label}`)

/** Expects the message in a conversation that visitor and operators can read. */
async function expectKept({ session, body }: Acknowledged) {
  expect(await cores.history(session)).toContain(body)
  const { messages } = await cores.core.messages.list(session.conversationId, {})
  expect(messages.map(({ message }) => message?.body)).toContain(body)
}

describe('a person who returns during an erasure', () => {
  it.each(ways)('gets a new conversation two seconds after its start and keeps the message (%s)', async (way) => {
    const person = await newPerson()
    await cores.core.erasures.begin(person.visitor, 'desk')
    cores.advance(2)
    const acknowledged = await returnAs(person, way)
    await workThrough()
    await expectKept(acknowledged)
    expect(await placesOf(person.old)).toEqual([])
  })

  it.each(ways)('gets a new conversation right after its start and keeps the message (%s)', async (way) => {
    const person = await newPerson()
    await cores.core.erasures.begin(person.visitor, 'desk')
    const acknowledged = await returnAs(person, way)
    await workThrough()
    await expectKept(acknowledged)
    expect(await placesOf(person.old)).toEqual([])
  })

  it('is not erased by a second erasure that began before the return, among others', async () => {
    const person = await newPerson()
    const others = [await newPerson(), await newPerson()]
    for (const each of [person, ...others, person]) await cores.core.erasures.begin(each.visitor, 'desk')
    const acknowledged = await returnAs(person, 'signed in, in the same browser')
    await workThrough()
    await expectKept(acknowledged)
    for (const { old } of [person, ...others]) expect(await placesOf(old)).toEqual([])
  })

  it('is erased by an erasure that begins after the return', async () => {
    const person = await newPerson()
    await cores.core.erasures.begin(person.visitor, 'desk')
    const { session, body } = await returnAs(person, 'signed in, in the same browser')
    await cores.core.erasures.begin(person.visitor, 'desk')
    await workThrough()
    expect(await placesOf([...person.old, session.sessionId, session.conversationId, body])).toEqual([])
  })

  it('keeps no reference to the erasure after it has finished', async () => {
    const person = await newPerson()
    const { erasureId } = await cores.core.erasures.begin(person.visitor, 'desk')
    for (const way of ways) await returnAs(person, way)
    expect((await placesOf([erasureId])).length).toBeGreaterThan(1)
    await workThrough()
    expect(await placesOf([erasureId])).toEqual([`erasures: ${erasureId}`])
  })

  it.each(ways)(
    'keeps the message when the process of the erasure dies at any write (%s)',
    async (way) => {
      for (let writes = 1; ; writes += 1) {
        const person = await newPerson()
        const mortal = cores.mortalCore(writes)
        const died = await mortal.erasures
          .begin(person.visitor, 'desk')
          .then(async () => {
            cores.advance(3)
            await mortal.erasures.work()
            cores.advance(61)
            await mortal.erasures.work()
          })
          .then(
            () => false,
            () => true,
          )
        const acknowledged = await returnAs(person, way)
        await workThrough()
        await expectKept(acknowledged)
        expect([writes, await placesOf(person.old)]).toEqual([writes, []])
        if (!died) return
      }
    },
    240_000,
  )
})

const isLive = ({ session }: Acknowledged) =>
  cores.history(session).then(
    () => true,
    () => false,
  )

describe('an agent', () => {
  it('cannot find a conversation after its erasure has begun', async () => {
    const person = await newPerson()
    const [conversationId = ''] = person.old.slice(-1)
    await cores.core.erasures.begin(person.visitor, 'desk')
    const agent = { displayName: 'Ada' }
    const late = { conversationId, clientOperationId: randomUUID(), body: 'too late' }
    await expect(cores.core.messages.sendAsAgent({ ...late, agent })).rejects.toThrow('NotFound')
    await expect(cores.core.messages.sendAsAgent(late)).rejects.toThrow('NotFound')
    await expect(cores.core.messages.list(conversationId, {})).rejects.toThrow('NotFound')
    await workThrough()
  })
})

describe('an owner that lost its lease', () => {
  it('writes no visitor data to a record that another core has finished', async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), fc.integer({ min: 1, max: 12 }), async (scheduler, calls) => {
        const person = await newPerson()
        const { erasureId } = await cores.core.erasures.begin(person.visitor, 'desk')
        cores.advance(3)
        let isOver = false
        const working = cores
          .scheduledCore(turnOf(scheduler, 'slow'))
          .erasures.work()
          .finally(() => (isOver = true))
        // The owner stops after this number of database calls.
        for (let call = 0; call < calls && !isOver; call += 1) {
          await until('its next call', () => scheduler.count() > 0 || isOver)
          if (!isOver) await scheduler.waitOne()
        }
        await workThrough()
        await scheduler.waitFor(working)
        const record = await cores.core.database.collections.erasures.findOne({ _id: erasureId })
        expect(record).toMatchObject({ stage: 'finished' })
        expect(record).not.toHaveProperty('traces')
        expect(await placesOf(person.old)).toEqual([])
      }),
      { numRuns: 12 },
    )
  }, 120_000)
})

describe('erasures, returns, bans and ends of sessions in any order', () => {
  it('remove all earlier data and no message of a session that stays live', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(fc.constantFrom(...ways), { minLength: 1, maxLength: 2 }),
        fc.constantFrom('nothing', 'a ban', 'a second erasure', 'a second owner'),
        async (scheduler, returns, besides) => {
          const person = await newPerson()
          const at = (label: string): CoreContext => cores.scheduledCore(turnOf(scheduler, label))
          const erase = async (label: string) => {
            const core = at(label)
            await core.erasures.begin(person.visitor, 'desk')
            cores.advance(3)
            await core.erasures.work()
          }
          const other = async () => {
            if (besides === 'a second erasure') await erase('second erasure')
            if (besides === 'a second owner') {
              cores.advance(31)
              await at('second owner').erasures.work()
            }
            if (besides === 'a ban') {
              const sessions = await cores.core.database.collections.sessions
                .find({ visitorId: person.visitorId })
                .toArray()
              await at('ban')
                .sessions.ban(sessions[0]!._id, 'rude')
                .catch(() => {})
            }
          }
          const acknowledged: Acknowledged[] = []
          const returning = returns.map((way, index) =>
            returnAs(person, way, at(`return ${index}`)).then(
              (each) => void acknowledged.push(each),
              () => {},
            ),
          )
          await scheduler.waitFor(Promise.all([erase('erasure'), other(), ...returning]))
          await workThrough()
          for (const each of acknowledged) if (await isLive(each)) await expectKept(each)
          expect(await placesOf(person.old)).toEqual([])
        },
      ),
      { numRuns: 25 },
    )
  }, 240_000)
})
