import { describe, expect, it } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { testDatabase } from '../../test/support/test-database.ts'
import { newId } from '../ids.ts'
import { type LogEvent, operationKeys } from '../log-event.ts'
import { logCore } from '../test/core-with.ts'
import { openTestDatabase } from '../test/open-test-database.ts'
import { type EventDraft, logOf } from './event-log.ts'
import { createEventStore, type EventStore } from './event-store.ts'

const database = await openTestDatabase(testDatabase())
const store = createEventStore(database.collections)

const unavailable = { code: 'ServiceUnavailable' }

/** Creates an event log on the engine. `over` replaces methods of the store. */
function newLog(over: Partial<EventStore> = {}) {
  const appended: LogEvent[] = []
  const inserted: LogEvent[][] = []
  const used: EventStore = {
    ...store,
    insert(events) {
      inserted.push(events)
      return (over.insert ?? store.insert)(events)
    },
    findOperations: over.findOperations ?? store.findOperations,
  }
  const core = logCore(used)
  core.bus.on('appended', (event) => void appended.push(event))
  return { ...logOf(core), metrics: core.metrics, appended, inserted }
}

const draft = (conversationId: string, type: EventDraft['type'] = 'agent.unassigned'): EventDraft => ({
  conversationId,
  type,
})
const message = (conversationId: string, operation: string): EventDraft => ({
  ...draft(conversationId, 'message.accepted'),
  operationKey: operationKeys.visitorMessage('ses_1', operation),
  inputHash: operation,
  message: { messageId: newId('msg'), author: { kind: 'visitor' }, body: 'Hi', contentType: 'text', state: 'queued' },
})
const many = (count: number) => Array.from({ length: count }, () => draft(newId('cnv')))
const readAll = (conversationId: string) => store.readAfter({ conversationId, after: 0 }, 1000, { transient: true })

describe('an append', () => {
  it('of new operations to open conversations needs no query for operation keys', async () => {
    let queries = 0
    const { append } = newLog({
      findOperations: (operations) => {
        queries += 1
        return store.findOperations(operations)
      },
    })
    const [one, other] = [newId('cnv'), newId('cnv')]
    await Promise.all([append(draft(one)), append(message(other, 'op'))])
    expect(queries).toBe(0)
  })

  it('makes a transient event removable after an hour', async () => {
    const { append } = newLog()
    const { event } = await append({ ...draft(newId('cnv'), 'typing.started'), transient: true })
    expect(event.removableAt!.getTime() - event.occurredAt.getTime()).toBe(3_600_000)
  })

  it('of an operation in the log is rejected as unavailable if its event is not found or cannot be read', async () => {
    const conversationId = newId('cnv')
    await newLog().append(message(conversationId, 'op'))
    for (const findOperations of [async () => [], () => Promise.reject(new Error('gone'))])
      await expect(newLog({ findOperations }).append(message(conversationId, 'op'))).rejects.toMatchObject(unavailable)
    expect(await readAll(conversationId)).toHaveLength(1)
  })

  it('whose sequence another process has taken is retried before later events', async () => {
    const conversationId = newId('cnv')
    const { append } = newLog()
    await append(draft(conversationId))
    await newLog().append(draft(conversationId))
    const [third, fourth] = await Promise.all([append(draft(conversationId)), append(draft(conversationId))])
    expect([third.event.sequence, fourth.event.sequence]).toEqual([3, 4])
  })

  it('after a failed write reads the end of the log again', async () => {
    const conversationId = newId('cnv')
    let failing = false
    const { append, metrics } = newLog({
      insert: (events) => (failing ? Promise.reject(new Error('gone')) : store.insert(events)),
    })
    await append(draft(conversationId))
    failing = true
    await expect(append(draft(conversationId))).rejects.toMatchObject(unavailable)
    failing = false
    await newLog().append(draft(conversationId))
    expect((await append(draft(conversationId))).event.sequence).toBe(3)
    expect((await metrics.logConflicts.get()).values).toEqual([])
  })

  itLong(
    'whose sequence is always taken by another process is rejected after 200 tries, and others succeed',
    async () => {
      const [taken, free] = [newId('cnv'), newId('cnv')]
      const { append, metrics, inserted } = newLog({
        async insert(events) {
          const own = events.filter(({ conversationId }) => conversationId === taken)
          if (own.length > 0) await newLog().append(draft(taken))
          return store.insert(events)
        },
      })
      const [first, second] = await Promise.allSettled([append(draft(taken)), append(draft(free))])
      expect(first).toMatchObject({ status: 'rejected', reason: unavailable })
      expect(second).toMatchObject({ status: 'fulfilled' })
      expect(inserted).toHaveLength(200)
      expect((await metrics.logConflicts.get()).values).toMatchObject([
        { labels: { kind: 'sequence_taken' }, value: 200 },
      ])
    },
  )
})

describe('a closed conversation', () => {
  it('stays closed after an event that is no message, also in another process, and is open after it is reopened', async () => {
    const conversationId = newId('cnv')
    const { append, appended } = newLog()
    await append(draft(conversationId, 'conversation.closed'))
    expect((await append(draft(conversationId))).event).toMatchObject({ sequence: 2, closed: true })
    expect(await newLog().append(draft(conversationId, 'conversation.closed'))).toMatchObject({
      event: { sequence: 2 },
      replayed: true,
    })
    const { event } = await append(message(conversationId, 'op'))
    expect(appended.map(({ type, closed }) => [type, closed])).toEqual([
      ['conversation.closed', true],
      ['agent.unassigned', true],
      ['conversation.reopened', undefined],
      ['message.accepted', undefined],
    ])
    expect(event.sequence).toBe(4)
  })
})

describe('batches', () => {
  it('have at most 512 events, and the metrics have their sizes and the queue', async () => {
    const { append, inserted, metrics } = newLog()
    await Promise.all(many(513).map(append))
    expect(inserted.map(({ length }) => length).toSorted((a, b) => b - a)).toEqual([512, 1])
    const { values } = await metrics.logBatchSize.get()
    expect(values.find(({ metricName }) => metricName?.endsWith('_sum'))?.value).toBe(513)
    const inserts = (await metrics.logInsertDuration.get()).values
    expect(inserts.find(({ metricName }) => metricName?.endsWith('_count'))?.value).toBe(2)
  })

  itLong('take events from a queue of at most 20,000, and a drain waits for all of them', async () => {
    const gate = Promise.withResolvers<void>()
    const { append, drain, metrics } = newLog({
      async insert(events) {
        await gate.promise
        return events.map(() => 'inserted' as const)
      },
    })
    await drain()
    const first = append(draft(newId('cnv')))
    const early = drain()
    await new Promise(setImmediate)
    const appends = many(20_000).map(append)
    let drained = false
    const late = drain().then(() => {
      drained = true
    })
    await expect(append(draft(newId('cnv')))).rejects.toMatchObject(unavailable)
    expect(drained).toBe(false)
    expect((await metrics.logQueueLength.get()).values[0]!.value).toBeGreaterThanOrEqual(20_000 - 2 * 512)
    gate.resolve()
    await Promise.all([first, ...appends, early, late])
    expect((await metrics.logQueueLength.get()).values).toMatchObject([{ value: 0 }])
  })
})
