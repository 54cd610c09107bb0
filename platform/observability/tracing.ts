import {
  type Attributes,
  type Context,
  context,
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

/**
 * Begins to send traces, where the environment names an OTLP endpoint; nothing is loaded otherwise, and every span below is
 * one that does nothing. Returns what sends the last ones and ends it.
 */
export async function startTracing(serviceName: string): Promise<() => Promise<void>> {
  const config = readTracingConfig()
  if (config === undefined) return async () => {}
  const { exportTraces } = await import('./trace-export.ts')
  const stop = exportTraces(config, serviceName)
  // A collector that is away must not make a failure of the stop.
  return () => stop().catch(() => {})
}

/** No trace: what is done in it begins one. */
export const newTrace: Context = ROOT_CONTEXT

export const activeContext = (): Context => context.active()

/** Runs within a span of this name, and ends it: with a status of failure where the work fails, never with its text. */
export function inSpan<T>(
  name: string,
  { kind = SpanKind.INTERNAL, attributes = {}, parent = context.active(), links = [] }: SpanOptions,
  run: (span: Span) => Promise<T>,
): Promise<T> {
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

export interface SpanOptions {
  kind?: SpanKind
  attributes?: Attributes
  /** Left out: what is under way here. */
  parent?: Context
  /** Work of others that this is done for, too. */
  links?: Context[]
}

/** Begins a span that somebody else ends; and the context to run its work in. */
export function beginSpan(name: string, { kind, attributes, parent = context.active() }: SpanOptions) {
  const span = tracer.startSpan(name, { ...(kind && { kind }), ...(attributes && { attributes }) }, parent)
  return { span, within: <T>(run: () => T): T => context.with(trace.setSpan(parent, span), run) }
}

/**
 * Where the span of a batch belongs: it goes on with the trace of the first of those it is done for that is kept, and has
 * links to the others.
 */
export function batchOrigin(origins: Context[]): Required<Pick<SpanOptions, 'parent' | 'links'>> {
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

/** The context that a `traceparent` header names; none where it is missing or malformed. */
export function contextOf(traceparent: string | null | undefined): Context {
  return propagation.extract(ROOT_CONTEXT, traceparent, headerGetter)
}

/** The header that lets the next process go on with this trace; undefined where there is none. */
export function traceparentOf(of: Context = context.active()): string | undefined {
  const carrier: { traceparent?: string } = {}
  propagation.inject(of, carrier)
  return carrier.traceparent
}

const headerGetter: TextMapGetter<string | null | undefined> = {
  keys: () => ['traceparent'],
  get: (traceparent, key) => (key === 'traceparent' ? (traceparent ?? undefined) : undefined),
}
