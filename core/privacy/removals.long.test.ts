import { randomUUID } from 'node:crypto'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createBus } from '../bus.ts'
import { endOverdueTyping } from '../conversations/typing.ts'
import type { Core } from '../core.ts'
import { captureLead } from '../deliveries/lead-capture.ts'
import { bareCore } from '../test/core-with.ts'
import { hasFailed, testCores } from '../test/cores.ts'
import { mortalDatabase } from '../test/scheduled-database.ts'
import {
  acceptForms,
  finishErasures,
  flushAll,
  idsOf,
  placesOfTexts,
  plantMarks,
  visitorOf,
} from '../test/visitor-marks.ts'
import { wakeupStoreOf } from '../wakeups/wakeups.ts'
import { documents } from './data-store.ts'
import { noTraces, type RemovalKind } from './model.ts'
import {
  advanceRemoval,
  beginRemoval,
  claimRemoval,
  confirmRemoval,
  finishRemoval,
  insertRemoval,
  type Removal,
  type RemovalList,
  removalListsOf,
  runDueRemovals,
} from './removals.ts'

const cores = testCores({ started: false })
beforeAll(() => acceptForms(cores))
const past = new Date(0)

describe('a removal of the previous version', () => {
  // The first wait is as long as the wake-ups of the data are kept.
  const waits = [61, 3, 61, 121, 3, 61, 31]

  async function finish() {
    for (const seconds of waits) {
      await flushAll(cores)
      cores.advance(seconds)
      await endOverdueTyping(cores.core)
      await runDueRemovals(cores.core)
    }
  }

  it.each(['ending', 'removing', 'removed'] as const)('of a visitor is finished from the stage `%s`', async (stage) => {
    const planted = await plantMarks(cores, { verified: true })
    const visitor = await visitorOf(cores, planted.session)
    const texts = [...planted.marks, ...(await idsOf(cores, planted))]
    const erasureId = `ers_${randomUUID()}`
    const { collections } = cores.core.database
    await collections.erasures.insertOne({
      _id: erasureId,
      workspaceId: cores.workspaceId,
      stage,
      requestedBy: 'desk',
      requestedAt: new Date(),
      visitor,
      until: new Date(cores.now()),
      traces: { ...noTraces(), visitorIds: visitor.subjectIds, commandIds: ['cmd_1'] } as never,
      fencingToken: 2,
      nextAt: past,
    })
    await finishErasures(cores)
    expect(await placesOfTexts(cores, texts)).toEqual([])
    const finished = (await collections.erasures.findOne({ _id: erasureId }))!
    for (const field of ['visitor', 'traces', 'until', 'nextAt', 'fencingToken'])
      expect(finished).not.toHaveProperty(field)
  })

  it.each(['marking', 'checking', 'removing', 'removed'] as const)(
    'of conversations, of leads and of an object is finished from the stage `%s`',
    async (stage) => {
      const shop = await cores.newSite()
      const { collections } = cores.core.database
      const session = await cores.newSession(cores.core, randomUUID(), shop)
      await cores.send(session, 'hello')
      const leadId = await captureLead(
        cores.core,
        { workspaceId: shop.workspaceId, source: 'crm', fields: { note: 'x' } },
        undefined,
      )
      const common = { workspaceId: shop.workspaceId, stage, fencingToken: 3, nextAt: past }
      const removals = [
        { _id: 'rmv_c', kind: 'conversations' as const, ids: [session.conversationId], isDeletion: true as const },
        { _id: 'rmv_l', kind: 'leads' as const, ids: [leadId], isDeletion: true as const },
        { _id: 'rmv_o', kind: 'workspace' as const, ids: [shop.workspaceId] },
      ]
      if (stage !== 'marking')
        for (const { _id, kind, ids } of removals.slice(0, 2))
          await collections[kind as 'leads'].updateMany({ _id: { $in: ids } }, { $set: { erasing: _id } })
      await collections.removals.insertMany(removals.map((each) => ({ ...each, ...common })))
      await finish()
      expect(await collections.removals.countDocuments()).toBe(0)
      expect(await placesOfTexts(cores, [session.conversationId, session.sessionId, leadId])).toEqual([])
    },
  )
})

describe('the steps of a removal', () => {
  /** Lists as of old data, of an object that grows, and of a visitor who has to wait. */
  const shapes = ['checked', 'checked again', 'waits'] as const
  const kind: RemovalKind = 'leads'
  const scratch = () => cores.core.database.collections.typing
  beforeEach(async () => {
    await scratch().deleteMany({})
    await scratch().insertMany(Array.from({ length: 250 }, (_, index) => ({ _id: `t${index}` }) as never))
    await cores.core.database.collections.removals.deleteMany({})
  })

  /** Creates an engine that dies after a number of writes. Its list notes its steps in `seen`. */
  function engine(shape: (typeof shapes)[number], writes: number, seen: string[], clock: { ms: number }) {
    const database = mortalDatabase(cores.core.database, writes)
    const { typing } = database.collections
    const note = (step: string) => void (seen.at(-1) !== step && seen.push(step))
    let checks = 0
    let waited = 0
    const parts = [documents(typing as never, {} as never)]
    const list: RemovalList = {
      hiddenMs: 10,
      removesLate: shape !== 'checked again',
      hide: async () => note('hide'),
      ...(shape !== 'waits' && {
        async check(_: Core, { ids }: Removal) {
          note('check')
          checks += 1
          return shape === 'checked again' && checks === 1 ? undefined : ids
        },
      }),
      async next(_, { ids, stage }) {
        note(stage)
        if (shape === 'waits' && waited++ % 2 === 0) return { waitMs: 5 }
        return { items: ids, partsOf: () => parts }
      },
      forget: async () => note('forget'),
    }
    const lists = Object.fromEntries([[kind, list]]) as Record<RemovalKind, RemovalList>
    const { metrics } = cores.core
    const core = bareCore({ database, db: database.collections, metrics, bus: createBus(), now: () => clock.ms })
    removalListsOf.set(core, lists)
    wakeupStoreOf.set(core, { removeBefore: async () => true } as never)
    return core
  }

  it.each(shapes)(
    'are finished by another core in their order after a death between any two writes (%s)',
    async (shape) => {
      for (let writes = 0, died = true; died; writes += 1) {
        const seen: string[] = []
        const clock = { ms: Date.UTC(2126, 0, 1) }
        const mortal = engine(shape, writes, seen, clock)
        const removal = { workspaceId: cores.workspaceId, kind, ids: ['ld_1'] }
        const work = async (core: typeof mortal) => {
          for (let round = 0; round < 12; round += 1) {
            await runDueRemovals(core)
            clock.ms += 61_000
          }
        }
        died = await hasFailed(beginRemoval(mortal, removal).then(() => work(mortal)))
        await work(engine(shape, Number.POSITIVE_INFINITY, seen, clock))
        const { removals } = cores.core.database.collections
        expect([writes, await removals.countDocuments()]).toEqual([writes, 0])
        if (writes === 0) continue
        const order = ['hide', 'check', 'removing', 'removed', 'forget']
        const places = seen.map((step) => order.indexOf(step))
        // A step that a dead core did not record is repeated, and none is left out.
        for (const [index, place] of places.entries())
          if (index > 0) expect(place - places[index - 1]!).toBeLessThanOrEqual(2)
        expect(new Set(seen)).toEqual(
          new Set(
            order.filter(
              (step) => (step !== 'check' || shape !== 'waits') && (step !== 'removed' || shape !== 'checked again'),
            ),
          ),
        )
        expect([writes, await scratch().countDocuments()]).toEqual([writes, 0])
      }
    },
  )

  it('change nothing on a core whose lease another core has taken over', async () => {
    const clock = { ms: Date.UTC(2126, 0, 1) }
    const core = bareCore({ db: cores.core.db, now: () => clock.ms })
    const lost = (await insertRemoval(
      core,
      { removalId: 'rmv_1', workspaceId: cores.workspaceId, kind, ids: ['a', 'b'], stage: 'removing' },
      new Date(clock.ms),
    ))!
    const held = (await claimRemoval(core, new Date(clock.ms + 30_000)))!
    await expect(advanceRemoval(core, lost, 'removed', new Date(0), [])).rejects.toThrow('taken over')
    await finishRemoval(core, lost)
    await expect(confirmRemoval(core, lost)).rejects.toThrow('taken over')
    expect(await cores.core.database.collections.removals.findOne({ _id: 'rmv_1' })).toMatchObject({
      stage: 'removing',
      ids: ['a', 'b'],
      fencingToken: held.lease.token,
    })
  })
})
