import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { runs, someOf } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { banSession, findSession } from '../bans/bans.ts'
import type { RunningCore } from '../context.ts'
import { listMessages, sendAsAgent } from '../conversations/messages.ts'
import type { SessionContent } from '../sessions/model.ts'
import { hasFailed, testCores } from '../test/cores.ts'
import { finishErasures, flushAll, placesOfTexts } from '../test/visitor-marks.ts'
import { sweepWakeups } from '../wakeups/wakeups.ts'
import { eraseVisitor } from './erasures.ts'
import { runDueRemovals } from './removals.ts'
import { visitorOfSubject } from './visitor-data.ts'

const cores = testCores()

const placesOf = (texts: string[]) => placesOfTexts(cores, texts)

/** Ways in which an erased person returns. */
const ways = [
  'anonymous in the same browser',
  'signed in, in the same browser',
  'signed in, in another browser',
] as const
type Way = (typeof ways)[number]

/** A message that the service acknowledged to a returning person. */
interface Acknowledged {
  session: SessionContent
  body: string
}

/** Creates a verified person who sent messages anonymously and after login. */
async function newPerson() {
  const sub = randomUUID()
  const browser = randomUUID()
  const mark = randomUUID().replaceAll('-', '')
  const anonymous = await cores.newSession(cores.core, browser)
  await cores.send(anonymous, `${mark} before the login`)
  const session = await cores.identify(await cores.newSession(cores.core, browser), cores.sign({ sub }))
  await cores.send(session, `${mark} after it`)
  const { visitorId } = await findSession(cores.core, session.sessionId)
  const old = [mark, anonymous.sessionId, anonymous.conversationId, session.sessionId, session.conversationId]
  return { sub, browser, visitorId, old, visitor: await visitorOfSubject(cores.core, cores.workspaceId, sub) }
}

type Person = Awaited<ReturnType<typeof newPerson>>

/** Lets the person return in the given way and send a message. */
async function returnAs(
  { sub, browser }: Pick<Person, 'sub' | 'browser'>,
  way: Way,
  core = cores.core,
): Promise<Acknowledged> {
  const created = await cores.newSession(core, way === 'signed in, in another browser' ? randomUUID() : browser)
  const isAnonymous = way === 'anonymous in the same browser'
  const session = isAnonymous ? created : await cores.identify(created, cores.sign({ sub }), { core })
  const body = `back ${randomUUID()}`
  await cores.send(session, body, { core })
  return { session, body }
}

/** Expects that the visitor and the operators can still read the message. */
async function expectKept({ session, body }: Acknowledged) {
  expect(await cores.history(session)).toContain(body)
  const { messages } = await listMessages(cores.core, session.conversationId, {})
  expect(messages.map(({ message }) => message?.body)).toContain(body)
}

const workThrough = () => finishErasures(cores)

describe('a person who returns during an erasure', () => {
  it.each(ways.flatMap((way) => [0, 2].map((seconds) => [way, seconds] as const)))(
    'gets a new conversation and keeps the new message (%s, %i seconds after the erasure began)',
    async (way, seconds) => {
      const person = await newPerson()
      await eraseVisitor(cores.core, person.visitor, 'desk')
      cores.advance(seconds)
      const acknowledged = await returnAs(person, way)
      await workThrough()
      await expectKept(acknowledged)
      expect(await placesOf(person.old)).toEqual([])
    },
  )

  it('is not erased by a second erasure of the same person that began before the return', async () => {
    const person = await newPerson()
    const others = [await newPerson(), await newPerson()]
    for (const each of [person, ...others, person]) await eraseVisitor(cores.core, each.visitor, 'desk')
    const acknowledged = await returnAs(person, 'signed in, in the same browser')
    await workThrough()
    await expectKept(acknowledged)
    for (const { old } of [person, ...others]) expect(await placesOf(old)).toEqual([])
  })

  it('is erased by another erasure that begins after the return', async () => {
    const person = await newPerson()
    await eraseVisitor(cores.core, person.visitor, 'desk')
    const { session, body } = await returnAs(person, 'signed in, in the same browser')
    await eraseVisitor(cores.core, person.visitor, 'desk')
    await workThrough()
    expect(await placesOf([...person.old, session.sessionId, session.conversationId, body])).toEqual([])
  })

  it('has no stored reference to the erasure after it has finished, also by another process', async () => {
    const left: unknown[] = []
    await cores.untilOneSurvives(
      async (mortal, writes) => {
        const person = await newPerson()
        const { erasureId } = await eraseVisitor(cores.core, person.visitor, 'desk')
        for (const way of ways) await returnAs(person, way)
        expect((await placesOf([erasureId])).length).toBeGreaterThan(1)
        const died = await hasFailed(workWith(mortal))
        await workThrough()
        const places = (await placesOf([erasureId])).filter((place) => !place.startsWith('erasures: '))
        if (places.length > 0) left.push([writes, places])
        return died
      },
      { every: 121, everyInLong: 7 },
    )
    expect(left).toEqual([])
  })

  it.each(someOf([...ways.entries()], 1))(
    'keeps the new message when the process that runs the erasure dies (case %i: %s)',
    async (_, way) => {
      const writesOf = new Map<string, number>()
      await cores.untilOneSurvives(
        async (mortal, writes) => {
          const person = await newPerson()
          const died = await diesInErasure(mortal, person.visitor)
          const acknowledged = await returnAs(person, way)
          await workThrough()
          await expectKept(acknowledged)
          for (const text of person.old) writesOf.set(text, writes)
          return died
        },
        { every: 121, everyInLong: 7 },
      )
      const places = await placesOf([...writesOf.keys()])
      expect(places.map((place) => [place, writesOf.get(place.split(': ')[1]!)])).toEqual([])
    },
  )
})

/** Erases a visitor. Returns whether the core died. The operator repeats a call that failed. */
async function diesInErasure(core: RunningCore, visitor: Person['visitor']) {
  if (!(await hasFailed(eraseVisitor(core, visitor, 'desk')))) return hasFailed(workWith(core))
  await eraseVisitor(cores.core, visitor, 'desk')
  return true
}

async function workWith(core: RunningCore) {
  for (const seconds of [3, 61, 61, 3]) {
    await flushAll(cores)
    cores.advance(seconds)
    await runDueRemovals(core)
  }
}

const isLive = ({ session }: Acknowledged) =>
  cores.history(session).then(
    () => true,
    () => false,
  )

describe('an agent', () => {
  it('cannot find a conversation after its erasure has begun', async () => {
    const person = await newPerson()
    const [conversationId = ''] = person.old.slice(-1)
    await eraseVisitor(cores.core, person.visitor, 'desk')
    const agent = { displayName: 'Ada' }
    const late = { conversationId, clientOperationId: randomUUID(), body: 'too late' }
    await expect(sendAsAgent(cores.core, { ...late, agent })).rejects.toThrow('NotFound')
    await expect(sendAsAgent(cores.core, late)).rejects.toThrow('NotFound')
    await expect(listMessages(cores.core, conversationId, {})).rejects.toThrow('NotFound')
    await workThrough()
  })
})

describe('an erasure process that lost its lease', () => {
  it('writes no visitor data to the erasure record that another core has finished', async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), fc.integer({ min: 1, max: 24 }), async (scheduler, calls) => {
        const person = await newPerson()
        const { erasureId } = await eraseVisitor(cores.core, person.visitor, 'desk')
        cores.advance(3)
        let isOver = false
        const working = runDueRemovals(cores.scheduledCore(scheduler)).finally(() => (isOver = true))
        // Lets the owner of the lease make this number of database calls, then pauses it.
        for (let call = 0; call < calls && !isOver; call += 1) {
          await until('its next call', () => scheduler.count() > 0 || isOver)
          if (!isOver) await scheduler.waitOne()
        }
        await workThrough()
        await scheduler.waitFor(working)
        const record = await cores.core.database.collections.erasures.findOne({ _id: erasureId })
        expect(record).toMatchObject({ stage: 'finished' })
        expect(record).not.toHaveProperty('traces')
        // A core that loses the lease between the lease check and the wake-up still writes the ids of
        // the wake-up. The sweep of wake-ups removes them within two minutes.
        for (let sweep = 0; sweep < 2; sweep += 1) {
          cores.advance(31)
          await sweepWakeups(cores.core)
        }
        expect(await placesOf(person.old)).toEqual([])
      }),
      runs(40, 20),
    )
  })
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
          const at = (label: string): RunningCore => cores.scheduledCore(scheduler, { name: label })
          const erase = async (label: string) => {
            const core = at(label)
            await eraseVisitor(core, person.visitor, 'desk')
            cores.advance(3)
            await runDueRemovals(core)
          }
          const other = async () => {
            if (besides === 'a second erasure') await erase('second erasure')
            if (besides === 'a second owner') {
              cores.advance(31)
              await runDueRemovals(at('second owner'))
            }
            if (besides === 'a ban') {
              const sessions = await cores.core.database.collections.sessions
                .find({ visitorId: person.visitorId })
                .toArray()
              await banSession(at('ban'), sessions[0]!._id, 'rude').catch(() => {})
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
      runs(60, 20),
    )
  })
})
