import { batchOrigin, type Context, inSpan, SpanKind } from '../../platform/observability/tracing.ts'
import type { LogEvent } from '../log-event.ts'
import type { CoreMetrics } from '../metrics.ts'
import type { EventStore } from './event-store.ts'

/** Gets the duration of a write that took a second or longer, and the correlation ids of its messages. */
export type OnSlowWrite = (durationMs: number, correlationIds: string[]) => void

const slowWriteMs = 1_000

/**
 * Returns the store's `insert`, with a span, with metrics of size and duration, and with a report of
 * each slow write. `origins` are the contexts of the requests that a batch belongs to.
 */
export function measuredInsert(
  store: Pick<EventStore, 'insert'>,
  { metrics, now, onSlowWrite }: { metrics: CoreMetrics; now: () => number; onSlowWrite: OnSlowWrite },
) {
  return async (events: LogEvent[], origins: Context[]) => {
    metrics.logBatchSize.observe(events.length)
    const began = now()
    const attributes = {
      'db.system.name': 'mongodb',
      'db.collection.name': 'events',
      'db.operation.name': 'insert',
      'db.operation.batch.size': events.length,
    }
    const options = { ...batchOrigin(origins), kind: SpanKind.CLIENT, attributes }
    const endTimer = metrics.logInsertDuration.startTimer()
    try {
      return await inSpan('insert events', options, () => store.insert(events))
    } finally {
      endTimer()
      const durationMs = now() - began
      if (durationMs >= slowWriteMs) onSlowWrite(durationMs, correlationIdsOf(events))
    }
  }
}

const correlationIdsOf = (events: LogEvent[]) => events.flatMap(({ message }) => message?.correlationId ?? [])
