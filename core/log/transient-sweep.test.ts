import { beforeAll, describe, expect, it } from 'vitest'
import type { CoreContext } from '../context.ts'
import { send, type TestVisitor, testCores } from '../test-cores.ts'
import { createEventLog } from './event-log.ts'
import { createEventStore } from './event-store.ts'
import { createLogHeads } from './log-heads.ts'
import { operationKeys } from './operation-keys.ts'
import { createReplayWindow } from './replay-window.ts'

const hour = 3_600_000
const cores = testCores(2, { GRANT_LIFETIME_SECONDS: 86400, SESSION_LIFETIME_SECONDS: 864_000 })
let a: CoreContext
let b: CoreContext
beforeAll(async () => {
  const opened = await cores.open()
  a = opened[0]!
  b = opened[1]!
})

async function type({ credentials }: TestVisitor) {
  await a.typing.setByVisitor(credentials, 'started')
  await a.typing.setByVisitor(credentials, 'stopped')
}

const sequencesOf = async ({ conversationId }: TestVisitor) =>
  (await cores.log(conversationId)).map(({ sequence }) => sequence)

const draft = ({ conversationId }: TestVisitor, text: string) => ({
  conversationId,
  type: 'message.received' as const,
  operationKey: operationKeys.agentMessage(text),
  inputHash: text,
  message: {
    messageId: text,
    author: { kind: 'agent' as const },
    body: text,
    contentType: 'text' as const,
    state: 'sent' as const,
  },
})

describe('the sweep of transient events', () => {
  it('removes transient events after an hour and no other events', async () => {
    const visitor = await cores.newVisitor()
    await send(a, visitor, 'one')
    await type(visitor)
    await send(a, visitor, 'two')
    cores.advance(hour - 1000)
    await a.transientSweep.sweep()
    expect(await sequencesOf(visitor)).toEqual([1, 2, 3, 4])
    cores.advance(2000)
    await Promise.all([a.transientSweep.sweep(), b.transientSweep.sweep()])
    expect(await sequencesOf(visitor)).toEqual([1, 4])
  })

  it('keeps the last event of a conversation, so that no sequence is used twice', async () => {
    const visitor = await cores.newVisitor()
    await send(a, visitor, 'one')
    await type(visitor)
    cores.advance(2 * hour)
    for (const core of [a, b, a]) await core.transientSweep.sweep()
    expect(await sequencesOf(visitor)).toEqual([1, 3])
    const fresh = createEventStore(a.database.collections)
    expect((await fresh.ends([visitor.conversationId])).get(visitor.conversationId)?.sequence).toBe(3)
    const log = createEventLog({ store: fresh, heads: createLogHeads(fresh), now: cores.now, onAppended() {} })
    expect((await log.append(draft(visitor, 'two'))).event.sequence).toBe(4)
  })

  it('removes a former end with later events, in batches', async () => {
    const visitor = await cores.newVisitor()
    await type(visitor)
    cores.advance(2 * hour)
    await a.transientSweep.sweep()
    expect(await sequencesOf(visitor)).toEqual([2])
    const again = await cores.newVisitor()
    const other = { ...visitor, credentials: again.credentials }
    await a.typing.setByAgent(
      { conversationId: other.conversationId, state: 'started', agent: { displayName: 'Ada' } },
      undefined,
    )
    cores.advance(9000)
    await a.typing.endOverdue()
    cores.advance(2 * hour)
    for (let more = true; more; ) ({ more } = await a.transientSweep.sweep(1))
    expect(await sequencesOf(visitor)).toEqual([4])
  })

  it('leaves no hole to a writer whose cached end is two hours old', async () => {
    const visitor = await cores.newVisitor()
    const store = createEventStore(a.database.collections)
    let elapsed = 0
    const clocks = { now: cores.now, monotonic: () => elapsed }
    const idleLog = createEventLog({ store, heads: createLogHeads(store, clocks), now: cores.now, onAppended() {} })
    await idleLog.append(draft(visitor, 'one'))
    await type(visitor)
    await send(b, visitor, 'two')
    cores.advance(2 * hour)
    elapsed += 2 * hour
    await a.transientSweep.sweep()
    expect(await sequencesOf(visitor)).toEqual([1, 4])
    const { event } = await idleLog.append(draft(visitor, 'three'))
    expect(event.sequence).toBe(5)
  })

  it.each([
    ['the wall clock was set back', { wall: -hour, elapsed: 2 * hour }],
    ['the machine slept', { wall: 2 * hour, elapsed: 0 }],
  ])('expires cached ends even when %s', async (_, { wall, elapsed }) => {
    const seen: string[][] = []
    const store = createEventStore(a.database.collections)
    const counting = {
      ends(ids: string[]) {
        seen.push(ids)
        return store.ends(ids)
      },
    }
    let times = { wall: 0, elapsed: 0 }
    const heads = createLogHeads(counting, { now: () => times.wall, monotonic: () => times.elapsed })
    heads.advance('cnv_x', { sequence: 5, closed: false })
    await heads.get(['cnv_x'])
    expect(seen).toEqual([])
    times = { wall, elapsed }
    expect(await heads.get(['cnv_x'])).toMatchObject([{ sequence: 0 }])
    expect(seen).toEqual([['cnv_x']])
  })

  it('does not change replay windows: transient events count neither by number nor by age', async () => {
    const visitor = await cores.newVisitor()
    const { conversationId } = visitor
    const store = createEventStore(a.database.collections)
    const window = createReplayWindow(store, { maxEvents: 2, maxAge: 600 }, cores.now)
    const resolveStart = (afterSequence: number, head: number) =>
      window.resolveStart(conversationId, { epoch: 'e', head, start: { afterSequence } })
    for (let round = 0; round < 3; round += 1) await type(visitor)
    cores.advance(700_000)
    await send(a, visitor, 'one')
    await send(a, visitor, 'two')
    expect(await resolveStart(0, 8)).toMatchObject({ state: 'ready', sequence: 0 })
    expect(await window.oldest(conversationId)).toBe(7)
    await send(a, visitor, 'three')
    expect(await resolveStart(0, 9)).toMatchObject({ state: 'reset_required', reason: 'window_exceeded' })
    expect(await resolveStart(7, 9)).toMatchObject({ state: 'ready', sequence: 7 })
  })

  it('does not change replays, which skip transient events anyway', async () => {
    const visitor = await cores.newVisitor()
    await send(a, visitor, 'one')
    for (let round = 0; round < 3; round += 1) await type(visitor)
    await send(a, visitor, 'two')
    await type(visitor)
    const [session, conversation] = await Promise.all([
      a.sessions.find(visitor.sessionId),
      a.stores.conversations.find([visitor.conversationId]).then(([found]) => found!),
    ])
    const replayed = async () => {
      const events: number[] = []
      let position = 0
      const subscription = await a.subscriptions.open({
        id: 1,
        session,
        epoch: conversation.epoch,
        start: { afterSequence: 0 },
        sink: {
          opened() {},
          event: (_, { sequence }) => void events.push(sequence),
          advanced: (_, sequence) => {
            position = sequence
          },
          paused() {},
          closed() {},
        },
      })
      await expect.poll(() => !subscription.isHeld && subscription.mode).toBe('live')
      a.subscriptions.close(subscription)
      return { events, position }
    }
    expect(await replayed()).toEqual({ events: [1, 8], position: 10 })
    cores.advance(2 * hour)
    await a.transientSweep.sweep()
    expect(await sequencesOf(visitor)).toEqual([1, 8, 10])
    expect(await replayed()).toEqual({ events: [1, 8], position: 10 })
  })
})
