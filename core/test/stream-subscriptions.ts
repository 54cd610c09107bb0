import { vi } from 'vitest'
import { createBus } from '../bus.ts'
import { type EventStore, eventsOf } from '../log/event-store.ts'
import { logHeadsOf } from '../log/log-heads.ts'
import type { LogEvent } from '../log-event.ts'
import { createCoreMetrics } from '../metrics.ts'
import type { Session } from '../sessions/model.ts'
import { growingTextsOf } from '../streams/growing-texts.ts'
import { type EncodedEvent, toStreamEvent } from '../streams/model.ts'
import { replayWindowOf, type StartPoint } from '../streams/replay-window.ts'
import { type SubscriptionSink, streamSubscriptionsOf } from '../streams/stream-subscriptions.ts'
import { type Wakeups, wakeupsOf } from '../wakeups/wakeups.ts'
import { bareCore } from './core-with.ts'

export const occurredAt = new Date(Date.UTC(2030, 0, 1))
export const epoch = 'e1'

export const eventAt = (sequence: number, change: Partial<LogEvent> = {}): LogEvent => ({
  conversationId: 'c',
  sequence,
  type: 'agent.unassigned',
  occurredAt,
  ...change,
})
export const upTo = (last: number) => Array.from({ length: last }, (_, index) => eventAt(index + 1))
export const ofSession = (sequence: number, sessionId: string, type: LogEvent['type'] = 'session.identified') =>
  eventAt(sequence, { type, sessionId })

export const long = { data: { label: 'x'.repeat(40_000) } }

/** Creates a core whose streams read these events. It knows the epochs in `epochs`, and no message grows. */
export function streamCore(
  { events, replayWindow, maySend = () => true, growingTexts, epochs = [] as string[] }: StreamParts,
  members: object,
) {
  const findOne = async ({ epoch }: { epoch?: string }) => (epoch && epochs.includes(epoch) ? {} : null)
  const db = { conversations: { findOne }, erasures: { findOne } }
  const core = bareCore({ db, now: Date.now, metrics: createCoreMetrics(), ...members })
  eventsOf.set(core, events as EventStore)
  logHeadsOf.set(core, { learn: (ids, read) => read(ids) } as ReturnType<typeof logHeadsOf>)
  replayWindowOf.set(core, replayWindow)
  growingTextsOf.set(core, growingTexts ?? { in: () => [], follow() {} })
  wakeupsOf.set(core, { maySend } as Wakeups)
  return core
}

type ReplayWindow = ReturnType<typeof replayWindowOf>

interface StreamParts {
  events: Pick<EventStore, 'ends' | 'readManyAfter'>
  replayWindow: ReplayWindow
  maySend?: () => boolean
  growingTexts?: ReturnType<typeof growingTextsOf>
  epochs?: string[]
}

/** Creates subscriptions to a log in memory. `calls` lists the calls of the sinks (receivers of events) in order. */
export function newScene(log: LogEvent[] = [], parts: Pick<StreamParts, 'maySend' | 'growingTexts'> = {}) {
  const bus = createBus()
  const metrics = createCoreMetrics()
  const calls: string[] = []
  const sent: EncodedEvent[] = []
  const warn = vi.fn()
  const events = {
    ends: vi.fn(async (ids: string[], _?: object) => {
      const ends = ids.map((id) => [id, log.filter(({ conversationId }) => conversationId === id).at(-1)] as const)
      return new Map(ends.flatMap(([id, end]) => (end ? [[id, { sequence: end.sequence, closed: false }]] : [])))
    }),
    readManyAfter: async (ranges: { conversationId: string; after: number }[]) =>
      log.filter(({ conversationId, sequence }) =>
        ranges.some((range) => range.conversationId === conversationId && sequence > range.after),
      ),
  }
  const replayWindow = {
    resolveStart: vi.fn<ReplayWindow['resolveStart']>(async (_, { head, start: { afterSequence = head } }) => ({
      state: 'ready',
      sequence: afterSequence,
    })),
    read: vi.fn<ReplayWindow['read']>(async (_, after, _through, limit, isAll) =>
      log
        .filter(({ sequence, transient }) => sequence > after && (isAll || !transient))
        .slice(0, limit)
        .map(toStreamEvent),
    ),
    oldest: async () => 0,
  }
  const core = streamCore({ events, replayWindow, ...parts }, { bus, metrics, logger: { warn } })
  core.now = () => occurredAt.getTime()
  const subscriptions = streamSubscriptionsOf(core)
  const sinkOf = (name: string): SubscriptionSink => ({
    opened: (id, session, { sequence, epoch: of }) =>
      void calls.push(`${name} opened ${id} ${session.sessionId} ${of}-${sequence}`),
    event(ids, event) {
      sent.push(event)
      calls.push(`${name} event ${ids} ${event.type} ${event.id}`)
    },
    replayed(id, events) {
      for (const event of events) this.event([id], event)
    },
    advanced: (ids, sequence) => void calls.push(`${name} advanced ${ids} ${sequence}`),
    availability: (ids, { data }) => void calls.push(`${name} availability ${ids} ${data}`),
    paused: (id) => void calls.push(`${name} paused ${id}`),
    closed: (id, error) => void calls.push(`${name} closed ${id}${error === undefined ? '' : ` ${error}`}`),
  })
  const sinks = { a: sinkOf('a'), b: sinkOf('b') }
  const observed: string[] = []
  subscriptions.observe({
    opened: ({ id }) => void observed.push(`opened ${id}`),
    ended: ({ id }) => void observed.push(`ended ${id}`),
  })
  return {
    ...subscriptions,
    bus,
    log,
    calls,
    sent,
    warn,
    events,
    replayWindow,
    observed,
    async open(
      start: StartPoint = {},
      { id = 1, sessionId = 'ses_1', conversationId = 'c', sink = 'a' as 'a' | 'b' } = {},
    ) {
      const session = { sessionId, conversationId } as Session
      const subscription = await subscriptions.open({ id, sink: sinks[sink], session, epoch, start })
      await settled()
      return subscription
    },
    /** Writes an event in this process. */
    append(event: LogEvent) {
      log.push(event)
      bus.emit('appended', event)
    },
    /** Returns the calls of the sinks since the last `take`. */
    take: () => calls.splice(0),
    openCount: async () => (await metrics.subscriptionsOpen.get()).values[0]?.value,
    resets: async () => (await metrics.streamResets.get()).values,
    async replays() {
      const { values } = await metrics.replaySize.get()
      const sampleOf = (end: string) => values.find(({ metricName }) => metricName?.endsWith(end))?.value
      return { count: sampleOf('_count'), sum: sampleOf('_sum') }
    },
  }
}

/** Resolves when only promises that wait for I/O or a timer are still pending. */
export const settled = () => new Promise(setImmediate)

/** Returns the sink calls that deliver the events `first` to `last` to subscription 1. */
export const eventsUpTo = (last: number, first = 1) =>
  Array.from({ length: last - first + 1 }, (_, index) => `a event 1 agent.unassigned e1-${first + index}`)
