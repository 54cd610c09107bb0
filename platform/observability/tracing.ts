import {
  type Attributes,
  type Context,
  context,
  INVALID_SPAN_CONTEXT,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type TextMapGetter,
  TraceFlags,
  trace,
} from '@opentelemetry/api'
import { readTracingConfig } from './config.ts'

export { type Context, type Span, SpanKind }

const tracer = trace.getTracer('service')
const noSpan = trace.wrapSpanContext(INVALID_SPAN_CONTEXT)
let isTracing = false

/**
 * Exports traces if the environment sets an OTLP endpoint. Otherwise loads no exporter. Returns a function that
 * flushes and stops the export.
 */
export async function startTracing(serviceName: string): Promise<() => Promise<void>> {
  const config = readTracingConfig()
  if (config === undefined) return async () => {}
  const { exportTraces } = await import('./trace-export.ts')
  const stop = exportTraces(config, serviceName)
  isTracing = true
  // The process must stop without an error even if the collector is unreachable.
  return () => stop().catch(() => {})
}

export const activeContext = (): Context => context.active()

/** Runs the function in a new span. If it fails, the span gets the error status, but never the message. */
export function inSpan<T>(
  name: string,
  { kind = SpanKind.INTERNAL, attributes = {}, parent = context.active(), links = [] }: SpanOptions,
  run: (span: Span) => Promise<T>,
): Promise<T> {
  if (!isTracing) return run(noSpan)
  const span = tracer.startSpan(name, { kind, attributes, links: linksTo(links) }, parent)
  return context.with(trace.setSpan(parent, span), async () => {
    try {
      return await run(span)
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR })
      throw error
    } finally {
      span.end()
    }
  })
}

/** Runs a call of the database in a span. `origins` are the contexts of the items that share the call. */
export function inDatabaseSpan<T>(
  name: string,
  { collection, operation, origins }: { collection: string; operation: string; origins?: Context[] },
  run: () => Promise<T>,
): Promise<T> {
  const attributes = {
    'db.system.name': 'mongodb',
    'db.collection.name': collection,
    'db.operation.name': operation,
    'db.operation.batch.size': origins?.length,
  }
  return inSpan(name, { ...(origins && batchOrigin(origins)), kind: SpanKind.CLIENT, attributes }, run)
}

interface SpanOptions {
  kind?: SpanKind
  attributes?: Attributes
  parent?: Context
  links?: Context[]
}

/** Begins a span that the caller ends. Returns null if this process exports no traces. */
export function beginSpan(name: string, { kind, attributes, parent = context.active() }: SpanOptions) {
  if (!isTracing) return null
  const span = tracer.startSpan(name, { kind, attributes }, parent)
  return { span, within: <T>(run: () => T) => context.with(trace.setSpan(parent, span), run) }
}

/**
 * Returns parent and links for the span of a batch whose items were created in `origins`. The first sampled origin
 * is the parent, and the other sampled ones are links.
 */
export function batchOrigin(origins: Context[]): Required<Pick<SpanOptions, 'parent' | 'links'>> {
  if (!isTracing) return { parent: ROOT_CONTEXT, links: [] }
  const kept = new Map(origins.flatMap((origin) => entryOf(origin)))
  const [parent = origins[0] ?? ROOT_CONTEXT, ...links] = kept.values()
  return { parent, links }
}

function entryOf(origin: Context): [string, Context][] {
  const of = trace.getSpanContext(origin)
  return of && (of.traceFlags & TraceFlags.SAMPLED) !== 0 ? [[of.spanId, origin]] : []
}

const linksTo = (origins: Context[]) =>
  origins.flatMap((origin) => {
    const linked = trace.getSpanContext(origin)
    return linked ? [{ context: linked }] : []
  })

/** Returns the context of a `traceparent` header; an empty one if the header is missing or malformed. */
export function contextOf(traceparent: string | null | undefined): Context {
  if (!isTracing) return ROOT_CONTEXT
  return propagation.extract(ROOT_CONTEXT, traceparent, headerGetter)
}

export function traceparentOf(of: Context = context.active()): string | undefined {
  if (!isTracing) return undefined
  const carrier: { traceparent?: string } = {}
  propagation.inject(of, carrier)
  return carrier.traceparent
}

const headerGetter: TextMapGetter<string | null | undefined> = {
  keys: () => ['traceparent'],
  get: (traceparent, key) => (key === 'traceparent' ? (traceparent ?? undefined) : undefined),
}
