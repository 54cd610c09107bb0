import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { createParser } from 'eventsource-parser'

const base = '/api/integrations/v1/widget'

export interface StreamEvent {
  id: string
  type: string
  sequence: number
  // biome-ignore lint/suspicious/noExplicitAny: tests check the raw response
  data: any
}

export interface EventStream {
  status: number
  headers: Headers
  /** All received events, in the order of arrival. */
  events: StreamEvent[]
  comments: string[]
  /** Returns the time of the last received bytes, measured with `performance.now()`. */
  lastReceivedAt(): number
  /** Resolves when the stream ends for any reason. */
  ended: Promise<void>
  close(): void
}

export interface Answer {
  status: number
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: tests check the raw response
  body: any
}

export interface Visitor {
  /** The session of the latest response that contained one. */
  // biome-ignore lint/suspicious/noExplicitAny: tests check the raw response
  session: any
  call(
    method: string,
    path: string,
    options?: { body?: unknown; headers?: Record<string, string>; via?: string },
  ): Promise<Answer>
  send(body: string, options?: { clientOperationId?: string; via?: string }): Promise<Answer>
  /** Retries the same operation while the error is retryable, as the contract requires. */
  sendUntilAccepted(body: string, clientOperationId?: string): Promise<Answer>
  // biome-ignore lint/suspicious/noExplicitAny: tests check the raw response
  history(options?: { via?: string }): Promise<any[]>
  /** Reads all history pages from the oldest message. Also returns the `lastSequence` of the last page. */
  readPages(options?: {
    via?: string
    limit?: number
    // biome-ignore lint/suspicious/noExplicitAny: tests check the raw response
  }): Promise<{ messages: any[]; lastSequence: number }>
  openStream(options?: {
    after?: number
    lastEventId?: string
    via?: string
    /** Called for each event. */
    onEvent?: (event: StreamEvent) => void
  }): Promise<EventStream>
}

export interface VisitorOptions {
  gatewayUrl: string
  origin: string
  siteKey: string
  /** Id of the browser. Default: a new id. */
  clientInstanceId?: string
  /** Idempotency key of the session's creation. Default: a new key. */
  creationKey?: string
  /** Timeout of a call, and of the first byte of a stream, in milliseconds. Default: none. */
  callTimeoutMs?: number
  /** Sends a request. Default: the global `fetch`. */
  fetch?: typeof fetch
}

/** Starts a visitor without a browser. This client follows the public contract. */
export async function startVisitor({
  gatewayUrl,
  origin,
  siteKey,
  clientInstanceId = randomUUID(),
  creationKey = randomUUID(),
  callTimeoutMs,
  fetch = globalThis.fetch,
}: VisitorOptions): Promise<Visitor> {
  const versioned = { Origin: origin, 'X-Service-Widget-Version': '1.0' }

  const visitor: Visitor = {
    session: undefined,

    async call(method, path, { body, headers = {}, via = gatewayUrl } = {}) {
      const response = await fetch(`${via}${base}${path}`, {
        method,
        headers: {
          ...versioned,
          ...(visitor.session ? { Authorization: `Bearer ${visitor.session.accessGrant}` } : {}),
          ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: body instanceof Uint8Array ? body : JSON.stringify(body) }),
        ...(callTimeoutMs !== undefined && { signal: AbortSignal.timeout(callTimeoutMs) }),
      })
      const text = await response.text()
      return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) }
    },

    send(body, { clientOperationId = randomUUID(), via = gatewayUrl } = {}) {
      return visitor.call('POST', '/messages', {
        body: { clientOperationId, body, contentType: 'text' },
        headers: { 'Idempotency-Key': clientOperationId },
        via,
      })
    },

    async sendUntilAccepted(body, clientOperationId = randomUUID()) {
      for (;;) {
        const answer = await visitor.send(body, { clientOperationId }).catch(() => undefined)
        if (answer && !answer.body?.retryable) return answer
        await delay(30 + Math.random() * 70)
      }
    },

    history: async (options) => (await visitor.readPages(options)).messages,

    async readPages({ via = gatewayUrl, limit = 100 } = {}) {
      const messages = []
      for (let after = 0; ; after = messages.at(-1)?.sequence ?? 0) {
        const { status, body } = await visitor.call('GET', `/messages?afterSequence=${after}&limit=${limit}`, { via })
        if (status !== 200) throw new Error(`history answered ${status} ${body?.code}`)
        messages.push(...body.messages)
        if (!body.hasMore) return { messages, lastSequence: body.lastSequence }
      }
    },

    async openStream({ after, lastEventId, via = gatewayUrl, onEvent } = {}) {
      const abort = new AbortController()
      const timer = callTimeoutMs === undefined ? undefined : setTimeout(() => abort.abort(), callTimeoutMs)
      const response = await fetch(`${via}${base}/events${after === undefined ? '' : `?afterSequence=${after}`}`, {
        headers: {
          ...versioned,
          Accept: 'text/event-stream',
          Authorization: `Bearer ${visitor.session.accessGrant}`,
          ...(lastEventId === undefined ? {} : { 'Last-Event-ID': lastEventId }),
        },
        signal: abort.signal,
      }).finally(() => clearTimeout(timer))
      let lastReceivedAt = performance.now()
      const stream: EventStream = {
        status: response.status,
        headers: response.headers,
        events: [],
        comments: [],
        lastReceivedAt: () => lastReceivedAt,
        ended: Promise.resolve(),
        close: () => abort.abort(),
      }
      const parser = createParser({
        onEvent: ({ id = '', event = '', data }) => {
          const parsed = JSON.parse(data)
          const came = { id, type: event, sequence: parsed.sequence, data: parsed.data }
          stream.events.push(came)
          onEvent?.(came)
        },
        onComment: (comment) => stream.comments.push(comment.trim()),
      })
      stream.ended = (async () => {
        const decoder = new TextDecoder()
        for await (const chunk of response.body ?? []) {
          lastReceivedAt = performance.now()
          parser.feed(decoder.decode(chunk, { stream: true }))
        }
      })().catch(() => {})
      return stream
    },
  }

  const created = await visitor.call('POST', '/sessions', {
    body: { publicSiteKey: siteKey, clientInstanceId },
    headers: { 'Idempotency-Key': creationKey },
  })
  if (created.status !== 201) throw new Error(`session creation answered ${created.status} ${created.body?.code}`)
  visitor.session = created.body
  return visitor
}
