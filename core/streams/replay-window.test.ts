import { describe, expect, it, vi } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { testDatabase } from '../../test/support/test-database.ts'
import { newId } from '../ids.ts'
import { logOf } from '../log/event-log.ts'
import { createEventStore, type EventStore } from '../log/event-store.ts'
import type { LogEvent, LogStart } from '../log-event.ts'
import { logCore } from '../test/core-with.ts'
import { openTestDatabase } from '../test/open-test-database.ts'
import { toStreamEvent } from './model.ts'
import { parseEventId, replayPage, replayWindowOf } from './replay-window.ts'

const database = await openTestDatabase(testDatabase())

const now = Date.UTC(2030, 0, 1)
const maxEvents = 20
const maxAge = 3600
const config = { REPLAY_WINDOW_EVENTS: maxEvents, REPLAY_WINDOW_SECONDS: maxAge }

/**
 * Creates a replay window over logs in memory. `lengths` has the number of events of each log, and
 * `timeOf` returns the time of the event with this sequence.
 */
function windowOver(lengths: Record<string, number>, timeOf: (sequence: number) => Date = () => new Date(now)) {
  const logs = Object.entries(lengths).toSorted(([a], [b]) => (a < b ? -1 : 1))
  const all = logs.flatMap(([conversationId, length]) =>
    upTo(length).map((sequence) => ({ conversationId, sequence, occurredAt: timeOf(sequence) }) as LogEvent),
  )
  type Range = { conversationId: string; after: number }
  const isIn = ({ conversationId, sequence }: LogEvent, range: Range) =>
    conversationId === range.conversationId && sequence > range.after
  const store = {
    ends: vi.fn(async (ids: string[], _?: object) => {
      const known = ids.filter((id) => lengths[id])
      return new Map(known.map((id) => [id, { sequence: lengths[id]!, closed: false }]))
    }),
    readAfter: vi.fn(async (range: Range, limit: number, _?: object) =>
      all.filter((event) => isIn(event, range)).slice(0, limit),
    ),
    readManyAfter: vi.fn(async (ranges: Range[], limit: number, _?: object) =>
      all.filter((event) => ranges.some((range) => isIn(event, range))).slice(0, limit),
    ),
    countAfter: vi.fn(async (range: Range, _: number) => all.filter((event) => isIn(event, range)).length),
    oldestSequence: vi.fn(async () => 3),
    starts: vi.fn(
      async (_: string[]) =>
        new Map<string, LogStart>(
          all.filter(({ sequence }) => sequence === 1).map((event) => [event.conversationId, event]),
        ),
    ),
  }
  const window = replayWindowOf(logCore(store, { config, now: () => now }))
  const startAt = (start: { afterSequence?: number; lastEventId?: string }, head = lengths.c ?? 0) =>
    window.resolveStart('c', { epoch: 'e1', head, start })
  return { ...window, store, startAt }
}

const sequencesOf = (events: { sequence: number }[] | undefined) => events?.map(({ sequence }) => sequence)
const upTo = (last: number, first = 1) => Array.from({ length: last - first + 1 }, (_, index) => first + index)
const resetFor = (reason: string) => ({ state: 'reset_required', reason, at: new Date(now) })

describe('an event id', () => {
  it.each([
    ['e1-0', 'e1', 0],
    ['Zz9-10', 'Zz9', 10],
    ['e1-9999999999', 'e1', 9_999_999_999],
    [`${'a'.repeat(32)}-7`, 'a'.repeat(32), 7],
  ])('is parsed into epoch and sequence: %s', (id, epoch, sequence) => {
    expect(parseEventId(id)).toEqual({ epoch, sequence })
  })

  it.each(['', 'e1', 'e1-', '-1', 'e1-01', 'e1-10000000000', `${'a'.repeat(33)}-1`, 'e 1-1', '!e1-1', 'e1-1x', 'e1-a'])(
    'is rejected as malformed: %j',
    (id) => {
      expect(parseEventId(id)).toBeUndefined()
    },
  )
})

describe('the start of a stream', () => {
  it.each([
    ['without a position', {}, 7],
    ['at the end of the log', { afterSequence: 7 }, 7],
    ['at the end of the log, given by an event id,', { afterSequence: 2, lastEventId: 'e1-7' }, 7],
  ])('%s is decided without a read of the log', async (_, start, sequence) => {
    const { startAt, store } = windowOver({ c: 7 })
    expect(await startAt(start)).toEqual({ state: 'ready', sequence })
    for (const method of Object.values(store)) expect(method).not.toHaveBeenCalled()
  })

  it.each([
    ['`afterSequence`', { afterSequence: 5, lastEventId: 'e1-2' }],
    ['`lastEventId`', { afterSequence: 2, lastEventId: 'e1-5' }],
  ])('is the greater one of `afterSequence` and the sequence in `lastEventId` (%s is greater)', async (_, start) => {
    const { startAt } = windowOver({ c: 7 })
    const decision = await startAt(start)
    expect(decision).toMatchObject({ state: 'ready', sequence: 5, page: [{ sequence: 6 }, { sequence: 7 }] })
  })

  it.each(['e2-5', 'nonsense'])('with the event id %s requires a reset', async (lastEventId) => {
    expect(await windowOver({ c: 7 }).startAt({ lastEventId, afterSequence: 7 })).toEqual(resetFor('epoch_changed'))
  })

  it('may be later than the last event that this core has received, but not later than the committed end of the log', async () => {
    const { startAt, store } = windowOver({ c: 7 })
    expect(await startAt({ afterSequence: 7 }, 4)).toEqual({ state: 'ready', sequence: 7 })
    expect(store.ends.mock.calls).toEqual([[['c'], { committed: true }]])
    expect(await startAt({ afterSequence: 8 }, 4)).toEqual(resetFor('position_unknown'))
    expect(await windowOver({}).startAt({ afterSequence: 1 })).toEqual(resetFor('position_unknown'))
  })

  it('requires a reset if more events were missed than the replay window has', async () => {
    const { startAt, store } = windowOver({ c: maxEvents + 5 })
    expect(await startAt({ afterSequence: 5 })).toMatchObject({ state: 'ready', sequence: 5 })
    expect(store.countAfter).not.toHaveBeenCalled()
    expect(await startAt({ afterSequence: 4 })).toEqual(resetFor('window_exceeded'))
    expect(store.countAfter.mock.calls).toEqual([[{ conversationId: 'c', after: 4 }, maxEvents + 1]])
  })

  it('requires no reset if the missed events fit into the window, although their sequences span a longer range', async () => {
    const { startAt, store } = windowOver({ c: maxEvents + 5 })
    store.countAfter.mockResolvedValue(maxEvents)
    expect(await startAt({ afterSequence: 4 })).toMatchObject({ state: 'ready', sequence: 4 })
  })

  it('requires a reset if the first missed event is older than the window', async () => {
    const atLimit = new Date(now - maxAge * 1000)
    expect(await windowOver({ c: 1 }, () => atLimit).startAt({ afterSequence: 0 })).toMatchObject({ state: 'ready' })
    const older = windowOver({ c: 3 }, (sequence) => (sequence === 2 ? new Date(atLimit.getTime() - 1) : new Date(now)))
    expect(await older.startAt({ afterSequence: 1 })).toEqual(resetFor('window_exceeded'))
    expect(await older.startAt({ afterSequence: 2 })).toMatchObject({ state: 'ready' })
  })

  it('has an empty page if all missed events were removed', async () => {
    const { startAt } = windowOver({})
    expect(await startAt({ afterSequence: 1 }, 3)).toEqual({ state: 'ready', sequence: 1, page: [] })
  })
})

describe('the oldest event of a replay', () => {
  const since = new Date(now - maxAge * 1000)
  const tooOld = new Date(since.getTime() - 1)

  it('is the oldest stored event if that event is not too old, and concurrent reads share one query', async () => {
    const { oldest, store } = windowOver({ c: 3, d: 1 }, () => since)
    expect(await Promise.all([oldest('c', maxEvents), oldest('d', 1)])).toEqual([1, 1])
    expect(store.starts.mock.calls).toEqual([[['c', 'd']]])
    expect(store.oldestSequence).not.toHaveBeenCalled()
  })

  it('is searched by age if the oldest stored event is too old', async () => {
    const { oldest, store } = windowOver({ c: 3 }, () => tooOld)
    expect(await oldest('c', maxEvents)).toBe(3)
    expect(store.oldestSequence.mock.calls).toEqual([['c', { since }]])
  })

  it('is searched by age if the oldest stored event is transient', async () => {
    const { oldest, store } = windowOver({})
    store.starts.mockResolvedValue(new Map([['c', { sequence: 1, occurredAt: since, transient: true }]]))
    expect(await oldest('c', maxEvents)).toBe(3)
    expect(store.oldestSequence.mock.calls).toEqual([['c', { since }]])
  })

  it('is searched by age and number if the log has more events than one replay may send', async () => {
    const { oldest, store } = windowOver({ c: 1 }, () => since)
    expect(await oldest('c', maxEvents + 1)).toBe(3)
    expect(store.oldestSequence.mock.calls).toEqual([['c', { since, newest: maxEvents }]])
  })

  it('is 0 in an empty log', async () => {
    const { oldest } = windowOver({})
    expect(await oldest('empty', 0)).toBe(0)
  })
})

describe('reads of a replay', () => {
  it('that begin at the same time share one query for up to 50 conversations', async () => {
    const ids = upTo(51, 1).map((number) => `c${number}`)
    const { read, store } = windowOver({ ...Object.fromEntries(ids.map((id) => [id, 3])), c7: 0 })
    const pages = await Promise.all(ids.map((id) => read(id, 1, 3, replayPage)))
    expect(pages.map(sequencesOf)).toEqual(ids.map((id) => (id === 'c7' ? [] : [2, 3])))
    expect(store.readManyAfter.mock.calls.map(([ranges]) => ranges.length)).toEqual([50, 1])
    expect(store.readManyAfter.mock.calls[0]![0][0]).toEqual({ conversationId: 'c1', after: 1 })
    expect(store.readAfter).not.toHaveBeenCalled()
  })

  it('of the same conversation each return the events after their own position', async () => {
    const { read } = windowOver({ c: 5 })
    expect((await Promise.all([read('c', 4, 5, replayPage), read('c', 2, 5, replayPage)])).map(sequencesOf)).toEqual([
      [5],
      [3, 4, 5],
    ])
  })

  it('read no more events of one conversation than their page has', async () => {
    const { read, store } = windowOver({ c: 150 })
    expect(sequencesOf(await read('c', 10, 150, 9))).toEqual(upTo(19, 11))
    expect(store.readManyAfter.mock.calls).toEqual([
      [[expect.objectContaining({ conversationId: 'c', after: 10 })], 9, { transient: false }],
    ])
    expect(store.readAfter).not.toHaveBeenCalled()
  })

  it('return at most one page', async () => {
    expect(sequencesOf(await windowOver({ c: 150 }).read('c', 10, 150, replayPage))).toEqual(upTo(110, 11))
  })

  it.each([
    [299, 0],
    [300, 2],
  ])(
    'that shared a query with %s events query again for %s conversations whose events may be missing',
    async (count, again) => {
      const { read, store } = windowOver({ a: 250, b: count - 250, c: 5 })
      store.readManyAfter.mockImplementationOnce(async (ranges, limit) => {
        expect([ranges.length, limit]).toEqual([3, 300])
        const events = await Promise.all(ranges.map((range) => store.readAfter(range, count)))
        store.readAfter.mockClear()
        return events.flat().slice(0, count)
      })
      const pages = await Promise.all(['a', 'b', 'c'].map((id) => read(id, 0, 3, replayPage)))
      expect(sequencesOf(pages[0])).toEqual(upTo(100))
      expect(sequencesOf(pages[1])).toEqual(upTo(count - 250))
      expect(store.readAfter.mock.calls.map(([{ conversationId }, limit]) => [conversationId, limit])).toEqual(
        ['b', 'c'].slice(0, again).map((id) => [id, replayPage]),
      )
    },
  )
})

describe('simultaneous reads', () => {
  it('have typing only where it was asked for, from memory and from the store', async () => {
    const store = createEventStore(database.collections)
    const writer = logCore(store, { config, now: () => now })
    const [inMemory, inStore] = [writer, logCore(store, { config, now: () => now })].map(replayWindowOf)
    const conversationId = newId('cnv')
    for (const transient of [undefined, true, undefined] as const)
      await logOf(writer).append({ conversationId, type: transient ? 'typing.started' : 'agent.unassigned', transient })
    for (const { read } of [inMemory!, inStore!]) {
      const pages = [read(conversationId, 0, 3, 2), read(conversationId, 0, 3, 2, true), read(conversationId, 1, 3, 9)]
      expect((await Promise.all(pages)).map(sequencesOf)).toEqual([[1, 3], [1, 2], [3]])
    }
  })

  itLong('return the same pages as single reads, even if their shared result is cut off', async () => {
    const store = createEventStore(database.collections)
    const log = logOf(logCore(store))
    const conversations = Array.from({ length: 45 }, () => newId('cnv'))
    // Write no events to the last five conversations.
    for (let turn = 0; turn < 90; turn += 1) {
      await Promise.all(
        conversations.slice(0, 40).map((conversationId) => log.append({ conversationId, type: 'agent.unassigned' })),
      )
    }
    const reads: string[] = []
    const counting: EventStore = {
      ...store,
      readManyAfter(...request) {
        reads.push('shared')
        return store.readManyAfter(...request)
      },
      readAfter(...request) {
        reads.push('own')
        return store.readAfter(...request)
      },
    }
    const window = replayWindowOf(logCore(counting, { config: { ...config, REPLAY_WINDOW_EVENTS: 1000 } }))
    const starts = conversations.map((conversationId, index) => ({ conversationId, after: index % 7 }))
    const pages = await Promise.all(
      starts.map(({ conversationId, after }) => window.read(conversationId, after, after, replayPage)),
    )
    for (const [index, page] of pages.entries()) {
      expect(page).toEqual((await store.readAfter(starts[index]!, replayPage)).map(toStreamEvent))
    }
    expect(reads.filter((kind) => kind === 'shared')).toHaveLength(1)
    expect(reads.filter((kind) => kind === 'own').length).toBeLessThan(starts.length / 2)
  })
})
