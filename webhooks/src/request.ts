import { WebhookError } from './webhook-error.ts'

type HeaderValue = string | string[] | null | undefined
type Chunks = AsyncIterable<Uint8Array | string>

/**
 * A request with its headers and its unparsed body: a Fetch `Request`, a request of `node:http` or
 * Express, or one of Fastify whose body is a buffer. The names of headers may have any case.
 */
export interface WebhookRequest {
  headers: { get(name: string): string | null } | Iterable<[string, HeaderValue]> | Record<string, HeaderValue>
  body?: unknown
  bodyUsed?: boolean
}

/** Returns a header; empty if it is missing. */
export function headerOf({ headers }: WebhookRequest, name: string): string {
  const isList = Symbol.iterator in headers
  if (!isList && typeof headers.get === 'function') return headers.get(name) ?? ''
  const entries = isList ? [...headers] : Object.entries(headers as Record<string, HeaderValue>)
  return entries
    .filter(([each]) => each.toLowerCase() === name)
    .flatMap(([, value]) => value ?? [])
    .join(', ')
}

/** Reads the body, at most `maxBytes`. Errors: `WebhookError`; `TypeError` for a body that was parsed or read before. */
export async function readBody(request: WebhookRequest, maxBytes: number): Promise<Uint8Array> {
  if (Number(headerOf(request, 'content-length')) > maxBytes) throw new WebhookError('body_too_large')
  const chunks: Uint8Array[] = []
  let length = 0
  const add = (chunk: Uint8Array | string) => {
    const bytes = typeof chunk === 'string' ? new TextEncoder().encode(chunk) : chunk
    length += bytes.length
    if (length > maxBytes) throw new WebhookError('body_too_large')
    chunks.push(bytes)
  }
  const source = bodySource(request)
  if (source instanceof Uint8Array || typeof source === 'string') add(source)
  else {
    try {
      for await (const chunk of source) add(chunk)
    } catch (error) {
      throw error instanceof WebhookError ? error : new WebhookError('body_incomplete', { cause: error })
    }
  }
  const body = new Uint8Array(length)
  let end = 0
  for (const chunk of chunks) {
    body.set(chunk, end)
    end += chunk.length
  }
  return body
}

const needsUnread = 'verify needs the unread body: call it before other readers'

/** Returns the bytes of the body, or the stream that has them. */
function bodySource(request: WebhookRequest): Uint8Array | string | Chunks {
  const { body } = request
  if (request.bodyUsed) throw new TypeError(needsUnread)
  if (body instanceof Uint8Array || typeof body === 'string') return body
  if (isStream(body)) return unread(body)
  if (body === null) return ''
  // Without a parser the body is the request itself, as in `node:http` and Express.
  if (body === undefined && isStream(request)) return unread(request)
  throw new TypeError('verify needs the unparsed body: register no JSON parser for this route, or one that keeps bytes')
}

interface NodeStream {
  readableEnded?: boolean
  iterator?(options: { destroyOnReturn: boolean }): Chunks
}

const isStream = (value: unknown): value is Chunks & NodeStream =>
  typeof value === 'object' && value !== null && Symbol.asyncIterator in value

/** Returns the stream. It stays open if reading stops early, so that the request can be answered. */
function unread(stream: Chunks & NodeStream): Chunks {
  if (stream.readableEnded) throw new TypeError(needsUnread)
  return stream.iterator?.({ destroyOnReturn: false }) ?? stream
}
