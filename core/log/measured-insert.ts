import { batchOrigin, type Context, inSpan, SpanKind } from '../../platform/observability/tracing.ts'
import type { LogEvent } from '../log-event.ts'
import type { CoreMetrics } from '../metrics.ts'
import type { EventStore } from './event-store.ts'

/**
 * Returns the store's `insert`, with a span and with metrics of size and duration. `origins` are the
 * contexts of the requests that a batch belongs to.
 */
export function measuredInsert(store: Pick<EventStore, 'insert'>, metrics: CoreMetrics) {
  return async (events: LogEvent[], origins: Context[]) => {
    metrics.logBatchSize.observe(events.length)
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
    }
  }
}
