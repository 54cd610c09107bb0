import { describe, expect, it, vi } from 'vitest'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { LogEnd, LogEvent } from '../log-event.ts'
import { createCoreMetrics } from '../metrics.ts'
import { createEventLog, type EventDraft, type EventLogDependencies } from './event-log.ts'

const at = Date.UTC(2030, 0, 1)
const occurredAt = new Date(at)
const none: LogEnd = { sequence: 0, closed: false }

/** Creates an event log over a store in memory. Tests can make the calls of the store fail. */
function newScene(options: Partial<EventLogDependencies> = {}) {
  const stored: LogEvent[] = []
  const batches: LogEvent[][] = []
  const appended: LogEvent[] = []
  const forgotten: string[][] = []
  const known = new Map<string, LogEnd>()
  const scene = {
    stored,
    batches,
    appended,
    forgotten,
    known,
    metrics: createCoreMetrics(),
    inserting: async (_events: LogEvent[]): Promise<void> => {},
    finding: async (found: LogEvent[]): Promise<LogEvent[]> => found,
  }
  const endOf = (id: string): LogEnd => {
    const last = stored.filter(({ conversationId }) => conversationId === id).at(-1)
    return last ? { sequence: last.sequence, closed: last.closed === true } : none
  }
  const isSame = (a: object, b: object, ...names: string[]) =>
    names.every((name) => a[name as never] !== undefined && a[name as never] === b[name as never])
  const log = createEventLog({
    store: {
      async insert(events) {
        batches.push(events)
        await scene.inserting(events)
        return events.map((event) => {
          if (stored.some((each) => isSame(each, event, 'conversationId', 'operationKey'))) return 'operation_taken'
          if (stored.some((each) => isSame(each, event, 'conversationId', 'sequence'))) return 'sequence_taken'
          stored.push(event)
          return 'inserted'
        })
      },
      findOperations: async (operations) =>
        scene.finding(
          stored.filter((event) => operations.some((each) => isSame(each, event, 'conversationId', 'operationKey'))),
        ),
    },
    heads: {
      get: async (ids) => ids.map((id) => known.get(id) ?? endOf(id)),
      advance: (id, end) => void known.set(id, end),
      learn: async () => new Map(),
      forget(ids) {
        forgotten.push(ids)
        for (const id of ids) known.delete(id)
      },
    },
    metrics: scene.metrics,
    now: () => at,
    onAppended: (event) => void appended.push(event),
    ...options,
  })
  return Object.assign(scene, log)
}

const draft = (conversationId: string, type: EventDraft['type'] = 'agent.unassigned', more: object = {}) =>
  ({ conversationId, type, ...more }) satisfies EventDraft
const message = (conversationId: string, operation: string, inputHash = operation) =>
  draft(conversationId, 'message.accepted', {
    operationKey: operation,
    inputHash,
    message: {
      messageId: `msg_${operation}`,
      author: { kind: 'visitor' },
      body: 'Hi',
      contentType: 'text',
      state: 'queued',
    },
  })

const unavailable = { code: ErrorCode.SERVICE_UNAVAILABLE }

describe('appending an event', () => {
  it('assigns the next sequence and the time', async () => {
    const { append, stored, appended, known } = newScene()
    const first = await append(draft('c'))
    expect(first).toEqual({
      event: { conversationId: 'c', type: 'agent.unassigned', sequence: 1, occurredAt },
      replayed: false,
    })
    await append(draft('c'))
    expect(stored.map(({ sequence }) => sequence)).toEqual([1, 2])
    expect(appended).toEqual(stored)
    expect(known.get('c')).toEqual({ sequence: 2, closed: false })
  })

  it('writes new events to open conversations without a query for operation keys', async () => {
    const scene = newScene()
    const finding = vi.spyOn(scene, 'finding')
    await Promise.all([scene.append(draft('c')), scene.append(message('d', 'op'))])
    expect(finding).not.toHaveBeenCalled()
  })

  it.each([
    [undefined, 3_600_000],
    [7, 7],
  ])('with transientMs %s makes a transient event removable after %s ms', async (transientMs, afterMs) => {
    const { append } = newScene(transientMs === undefined ? {} : { transientMs })
    const { event } = await append(draft('c', 'typing.started', { transient: true }))
    expect(event).toMatchObject({ transient: true, removableAt: new Date(at + afterMs) })
  })
})

describe('a drain', () => {
  it('resolves although more events arrive before and during the write', async () => {
    const scene = newScene()
    const gate = Promise.withResolvers<void>()
    scene.inserting = () => gate.promise
    const all = [scene.append(draft('c'))]
    const early = scene.drain()
    all.push(scene.append(draft('d')))
    await new Promise(setImmediate)
    const late = scene.drain()
    all.push(scene.append(draft('e')))
    gate.resolve()
    await Promise.all([...all, early, late])
    expect(scene.stored).toHaveLength(3)
  })
})

describe('a closed conversation', () => {
  async function closed() {
    const scene = newScene()
    const { event } = await scene.append(draft('c', 'conversation.closed'))
    expect(event).toMatchObject({ sequence: 1, closed: true })
    return scene
  }

  it('stays closed after events that are not messages, and sets `closed` in those events', async () => {
    const { append, known } = await closed()
    expect((await append(draft('c'))).event).toMatchObject({ sequence: 2, closed: true })
    expect(known.get('c')).toEqual({ sequence: 2, closed: true })
  })

  it('reports `replayed` when it is closed again', async () => {
    const { append, batches } = await closed()
    expect(await append(draft('c', 'conversation.closed'))).toEqual({
      event: { conversationId: 'c', type: 'conversation.closed', sequence: 1, occurredAt, closed: true },
      replayed: true,
    })
    expect(batches).toHaveLength(1)
  })

  it('is reopened by a message, with a `conversation.reopened` event before it', async () => {
    const { append, stored, appended } = await closed()
    const { event, replayed } = await append(message('c', 'op'))
    expect([event.sequence, replayed]).toEqual([3, false])
    expect(stored[1]).toEqual({ conversationId: 'c', type: 'conversation.reopened', sequence: 2, occurredAt })
    expect(stored[2]?.closed).toBeUndefined()
    expect(appended).toEqual(stored)
  })

  it('is open after a `conversation.reopened` event', async () => {
    const { append } = await closed()
    expect((await append(draft('c', 'conversation.reopened'))).event.closed).toBeUndefined()
  })

  it('stays closed when an old message is repeated', async () => {
    const scene = newScene()
    const { event } = await scene.append(message('c', 'op'))
    await scene.append(draft('c', 'conversation.closed'))
    expect(await scene.append(message('c', 'op'))).toEqual({ event, replayed: true })
    expect(scene.stored).toHaveLength(2)
  })

  it('is reopened by a message, while an open conversation in the same batch gets no reopened event', async () => {
    const scene = await closed()
    await scene.append(draft('d'))
    await Promise.all([scene.append(message('c', 'op')), scene.append(message('d', 'op'))])
    expect(scene.stored.filter(({ type }) => type === 'conversation.reopened')).toHaveLength(1)
  })
})

describe('an append of an operation that is already in the log', () => {
  it('returns the stored event, and rejects other input under the same key', async () => {
    const { append, metrics, stored } = newScene()
    const { event } = await append(message('c', 'op'))
    expect(await append(message('c', 'op'))).toEqual({ event, replayed: true })
    await expect(append(message('c', 'op', 'other'))).rejects.toMatchObject({ code: ErrorCode.IDEMPOTENCY_CONFLICT })
    expect((await append(message('d', 'op'))).replayed).toBe(false)
    expect(stored).toHaveLength(2)
    expect((await metrics.logConflicts.get()).values).toMatchObject([{ labels: { kind: 'operation_taken' }, value: 2 }])
  })

  it.each([
    ['is not found', async () => []],
    ['cannot be read', async () => Promise.reject(new Error('gone'))],
  ])('rejects as unavailable when its event %s', async (_, finding) => {
    const scene = newScene()
    await scene.append(message('c', 'op'))
    scene.finding = finding
    await expect(scene.append(message('c', 'op'))).rejects.toMatchObject(unavailable)
  })
})

describe('an append whose sequence another process has taken', () => {
  it('retries with the next sequence, before later events', async () => {
    const scene = newScene()
    await scene.append(draft('c'))
    scene.stored.push({ ...draft('c'), sequence: 2, occurredAt })
    const [second, third] = await Promise.all([scene.append(draft('c')), scene.append(draft('c'))])
    expect([second.event.sequence, third.event.sequence]).toEqual([3, 4])
    expect(scene.forgotten).toEqual([['c']])
    expect((await scene.metrics.logConflicts.get()).values).toMatchObject([
      { labels: { kind: 'sequence_taken' }, value: 1 },
    ])
  })

  it('rejects after 200 tries', async () => {
    const scene = newScene()
    scene.inserting = async ([event]) =>
      void scene.stored.push({ ...draft('c'), sequence: event!.sequence, occurredAt })
    const [first, second] = await Promise.allSettled([scene.append(draft('c')), scene.append(draft('d'))])
    expect(first).toMatchObject({ status: 'rejected', reason: unavailable })
    expect(second).toMatchObject({ status: 'fulfilled' })
    await scene.drain()
    expect(scene.batches).toHaveLength(200)
  })
})

describe('an append to a failing store', () => {
  it('rejects as unavailable, and the next append reads the end of the log again', async () => {
    const scene = newScene()
    scene.known.set('c', { sequence: 7, closed: false })
    const insert = scene.inserting
    scene.inserting = () => Promise.reject(new Error('gone'))
    const failed = await Promise.allSettled([scene.append(draft('c')), scene.append(draft('d'))])
    expect(failed).toMatchObject(Array(2).fill({ status: 'rejected', reason: unavailable }))
    expect(scene.forgotten).toEqual([['c', 'd']])
    scene.inserting = insert
    expect((await scene.append(draft('c'))).event.sequence).toBe(1)
    await scene.drain()
  })
})

describe('batches', () => {
  const many = (count: number) => Array.from({ length: count }, (_, index) => draft(`c${index}`))

  it.each([
    [{ maxBatch: 2 }, 5, [2, 2, 1]],
    [{}, 513, [512, 1]],
  ])('have at most the maximum number of events with options %j', async (options, count, sizes) => {
    const { append, batches, metrics } = newScene(options)
    await Promise.all(many(count).map(append))
    expect(batches.map(({ length }) => length)).toEqual(sizes)
    const { values } = await metrics.logBatchSize.get()
    expect(values.find(({ metricName }) => metricName?.endsWith('_sum'))?.value).toBe(count)
    const inserts = (await metrics.logInsertDuration.get()).values
    expect(inserts.find(({ metricName }) => metricName?.endsWith('_count'))?.value).toBe(sizes.length)
  })

  it.each([
    [{ maxBatch: 1 }, 2],
    [{ maxBatch: 1, maxInFlight: 3 }, 3],
  ])('are written at the same time up to a maximum number with options %j', async (options, most) => {
    const scene = newScene(options)
    const gate = Promise.withResolvers<void>()
    scene.inserting = () => gate.promise
    const all = many(5).map(scene.append)
    await new Promise(setImmediate)
    expect(scene.batches).toHaveLength(most)
    expect((await scene.metrics.logQueueLength.get()).values).toMatchObject([{ value: 5 - most }])
    let drained = false
    const draining = scene.drain().then(() => {
      drained = true
    })
    await new Promise(setImmediate)
    expect(drained).toBe(false)
    gate.resolve()
    await Promise.all([...all, draining])
    expect(scene.stored).toHaveLength(5)
  })

  it('take events from a queue of at most 20,000, and further events are rejected', async () => {
    const heads = { get: () => new Promise<never>(() => {}) } as unknown as EventLogDependencies['heads']
    const { append, metrics, drain } = newScene({ heads })
    await drain()
    for (const each of many(20_000)) void append(each)
    await expect(append(draft('late'))).rejects.toMatchObject(unavailable)
    expect((await metrics.logQueueLength.get()).values).toMatchObject([{ value: 20_000 - 2 * 512 }])
  })

  it('contain at most one event of each conversation, in the order of arrival', async () => {
    const { append, batches } = newScene()
    await Promise.all([draft('c'), draft('c'), draft('d')].map(append))
    expect(batches.map((batch) => batch.map(({ conversationId }) => conversationId))).toEqual([['c', 'd'], ['c']])
  })
})
