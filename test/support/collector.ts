import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { listen } from './listen.ts'
import { until } from './until.ts'

/** A span that was sent over OTLP, with the name of its service. */
export interface CollectedSpan {
  service: string
  name: string
  kind: number
  traceId: string
  spanId: string
  parentSpanId?: string
  links?: { traceId: string; spanId: string }[]
  /** Times in nanoseconds since 1970. */
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: Record<string, unknown>
  status?: { code?: number }
}

/** An OTLP endpoint (JSON over HTTP) that stores the spans it receives. */
export interface Collector {
  /** Settings with which a process sends its spans here, without delay. */
  env: Record<string, string>
  spans: CollectedSpan[]
  /** Waits for a span with this name for which `fits` returns true, and returns the span. */
  span(name: string, fits?: (span: CollectedSpan) => boolean): Promise<CollectedSpan>
  close(): Promise<unknown>
}

/** Kinds of spans in OTLP. */
export const [serverKind, clientKind] = [2, 3]

export const newTraceparent = () => `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-01`

/**
 * Returns a function that is true for child spans of `parent`. If `kind` is set, the child must also have this kind.
 */
export const childOf = (parent: CollectedSpan, kind?: number) => (span: CollectedSpan) =>
  span.parentSpanId === parent.spanId && span.traceId === parent.traceId && (kind === undefined || span.kind === kind)

export async function startCollector(): Promise<Collector> {
  const spans: CollectedSpan[] = []
  const server = createServer(async (request, response) => {
    const { resourceSpans } = JSON.parse(Buffer.concat(await request.toArray()).toString())
    if (request.url === '/v1/traces') spans.push(...resourceSpans.flatMap(spansOf))
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  })
  const { url, close } = await listen(server)
  return {
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_BSP_SCHEDULE_DELAY: '100' },
    spans,
    span: (name, fits = () => true) =>
      until(`a span ${name}`, () => spans.find((span) => span.name === name && fits(span))),
    close,
  }
}

interface Attribute {
  key: string
  value: Record<string, unknown>
}

function spansOf(of: {
  resource: { attributes: Attribute[] }
  scopeSpans: { spans: (Omit<CollectedSpan, 'service' | 'attributes'> & { attributes: Attribute[] })[] }[]
}): CollectedSpan[] {
  const service = String(attributesOf(of.resource.attributes)['service.name'])
  return of.scopeSpans.flatMap(({ spans }) =>
    spans.map(({ attributes, ...span }) => ({ ...span, service, attributes: attributesOf(attributes) })),
  )
}

const attributesOf = (attributes: Attribute[]) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))
