import { describe, expect, it } from 'vitest'
import { findSession } from '../bans/bans.ts'
import { endOverdueTyping, setTypingOfAgent, setTypingOfVisitor } from '../conversations/typing.ts'
import { operationKeys } from '../log-event.ts'
import { replayWindowOf } from '../streams/replay-window.ts'
import { streamSubscriptionsOf } from '../streams/stream-subscriptions.ts'
import { logCore } from '../test/core-with.ts'
import { send, type TestVisitor, testCores } from '../test/cores.ts'
import { findConversations } from './conversation-store.ts'
import { logOf } from './event-log.ts'
import { createEventStore } from './event-store.ts'
import { createLogHeads, logHeadsOf } from './log-heads.ts'
import { sweepTransient } from './transient-sweep.ts'

const hour = 3600
const hourMs = hour * 1000
const cores = testCores({
  count: 2,
  env: { GRANT_LIFETIME_SECONDS: '86400', SESSION_LIFETIME_SECONDS: '864000' },
  started: false,
})

async function type({ credentials }: TestVisitor) {
  await setTypingOfVisitor(cores.core, credentials, 'started')
  await setTypingOfVisitor(cores.core, credentials, 'stopped')
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
    await send(cores.core, visitor, 'one')
    await type(visitor)
    await send(cores.core, visitor, 'two')
    cores.advance(hour - 60)
    await sweepTransient(cores.core)
    expect(await sequencesOf(visitor)).toEqual([1, 2, 3, 4])
    cores.advance(61)
    await Promise.all([sweepTransient(cores.core), sweepTransient(cores.other)])
    expect(await sequencesOf(visitor)).toEqual([1, 4])
  })

  it('keeps the last event of a conversation, so that no sequence is used twice', async () => {
    const visitor = await cores.newVisitor()
    await send(cores.core, visitor, 'one')
    await type(visitor)
    cores.advance(2 * hour)
    for (const core of [cores.core, cores.other, cores.core]) await sweepTransient(core)
    expect(await sequencesOf(visitor)).toEqual([1, 3])
    const fresh = createEventStore(cores.core.database.collections)
    expect((await fresh.ends([visitor.conversationId])).get(visitor.conversationId)?.sequence).toBe(3)
    const log = logOf(logCore(fresh, { now: cores.now }))
    expect((await log.append(draft(visitor, 'two'))).event.sequence).toBe(4)
  })

  it('keeps a typing event at the end of its log, and removes it after later events, even with batches of one event', async () => {
    const visitor = await cores.newVisitor()
    await type(visitor)
    cores.advance(2 * hour)
    await sweepTransient(cores.core)
    expect(await sequencesOf(visitor)).toEqual([2])
    const again = await cores.newVisitor()
    const other = { ...visitor, credentials: again.credentials }
    await setTypingOfAgent(
      cores.core,
      { conversationId: other.conversationId, state: 'started', agent: { displayName: 'Ada' } },
      undefined,
    )
    cores.advance(9)
    await endOverdueTyping(cores.core)
    cores.advance(2 * hour)
    for (let more = true; more; ) ({ more } = await sweepTransient(cores.core, 1))
    expect(await sequencesOf(visitor)).toEqual([4])
  })

  it('lets a writer append at the next free sequence although its cached end is two hours old', async () => {
    const visitor = await cores.newVisitor()
    const store = createEventStore(cores.core.database.collections)
    let elapsed = 0
    const core = logCore(store, { now: cores.now })
    logHeadsOf.set(core, createLogHeads(store, { now: cores.now, monotonic: () => elapsed }))
    const idleLog = logOf(core)
    await idleLog.append(draft(visitor, 'one'))
    await type(visitor)
    await send(cores.other, visitor, 'two')
    cores.advance(2 * hour)
    elapsed += 2 * hourMs
    await sweepTransient(cores.core)
    expect(await sequencesOf(visitor)).toEqual([1, 4])
    const { event } = await idleLog.append(draft(visitor, 'three'))
    expect(event.sequence).toBe(5)
  })

  it.each([
    ['the wall clock was set back', { wall: -hourMs, elapsed: 2 * hourMs }],
    ['the machine slept', { wall: 2 * hourMs, elapsed: 0 }],
  ])('causes no wrong sequence, because cached ends expire even when %s', async (_, { wall, elapsed }) => {
    const seen: string[][] = []
    const store = createEventStore(cores.core.database.collections)
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

  it('does not change replay windows, because these ignore transient events', async () => {
    const visitor = await cores.newVisitor()
    const { conversationId } = visitor
    const store = createEventStore(cores.core.database.collections)
    const config = { REPLAY_WINDOW_EVENTS: 2, REPLAY_WINDOW_SECONDS: 600 }
    const window = replayWindowOf(logCore(store, { config, now: cores.now }))
    const resolveStart = (afterSequence: number, head: number) =>
      window.resolveStart(conversationId, { epoch: 'e', head, start: { afterSequence } })
    for (let round = 0; round < 3; round += 1) await type(visitor)
    cores.advance(700)
    await send(cores.core, visitor, 'one')
    await send(cores.core, visitor, 'two')
    expect(await resolveStart(0, 8)).toMatchObject({ state: 'ready', sequence: 0 })
    expect(await window.oldest(conversationId, 8)).toBe(7)
    await send(cores.core, visitor, 'three')
    expect(await resolveStart(0, 9)).toMatchObject({ state: 'reset_required', reason: 'window_exceeded' })
    expect(await resolveStart(7, 9)).toMatchObject({ state: 'ready', sequence: 7 })
  })

  it('does not change replays, because they skip transient events', async () => {
    const visitor = await cores.newVisitor()
    await send(cores.core, visitor, 'one')
    for (let round = 0; round < 3; round += 1) await type(visitor)
    await send(cores.core, visitor, 'two')
    await type(visitor)
    const [session, conversation] = await Promise.all([
      findSession(cores.core, visitor.sessionId),
      findConversations(cores.core, [visitor.conversationId]).then(([found]) => found!),
    ])
    const replayed = async () => {
      const events: number[] = []
      let position = 0
      const subscription = await streamSubscriptionsOf(cores.core).open({
        id: 1,
        session,
        epoch: conversation.epoch,
        start: { afterSequence: 0 },
        sink: {
          opened() {},
          event: (_, { sequence }) => void events.push(sequence),
          replayed: (_, replayed) => void events.push(...replayed.map(({ sequence }) => sequence)),
          advanced: (_, sequence) => {
            position = sequence
          },
          availability() {},
          paused() {},
          closed() {},
        },
      })
      await expect.poll(() => !subscription.isHeld && subscription.mode).toBe('live')
      streamSubscriptionsOf(cores.core).close(subscription)
      return { events, position }
    }
    expect(await replayed()).toEqual({ events: [1, 8], position: 10 })
    cores.advance(2 * hour)
    await sweepTransient(cores.core)
    expect(await sequencesOf(visitor)).toEqual([1, 8, 10])
    expect(await replayed()).toEqual({ events: [1, 8], position: 10 })
  })
})
