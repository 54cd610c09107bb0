import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { createParser } from 'eventsource-parser'

const base = '/api/integrations/v1/widget'

export interface StreamEvent {
  id: string
  type: string
  sequence: number
  // biome-ignore lint/suspicious/noExplicitAny: whatever the wire says is what the tests look at
  data: any
}

export interface EventStream {
  status: number
  headers: Headers
  /** Everything that came, in order. */
  events: StreamEvent[]
  comments: string[]
  /** When the last bytes came, by `performance.now()`. */
  lastSign(): number
  /** Resolves when the stream has ended, however it ended. */
  ended: Promise<void>
  close(): void
}

export interface Answer {
  status: number
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: whatever the wire says is what the tests look at
  body: any
}

export interface Visitor {
  /** The session content, as the last answer had it. */
  // biome-ignore lint/suspicious/noExplicitAny: whatever the wire says is what the tests look at
  session: any
  call(
    method: string,
    path: string,
    options?: { body?: unknown; headers?: Record<string, string>; via?: string },
  ): Promise<Answer>
  send(body: string, options?: { clientOperationId?: string; via?: string }): Promise<Answer>
  /** Sends as the contract tells a client to: the same operation again while the failure is retryable. */
  sendUntilAccepted(body: string, clientOperationId?: string): Promise<Answer>
  // biome-ignore lint/suspicious/noExplicitAny: whatever the wire says is what the tests look at
  history(options?: { via?: string }): Promise<any[]>
  /** Every page from the oldest message on, with the `lastSequence` of the last one. */
  readPages(options?: {
    via?: string
    limit?: number
    // biome-ignore lint/suspicious/noExplicitAny: whatever the wire says is what the tests look at
  }): Promise<{ messages: any[]; lastSequence: number }>
  openStream(options?: {
    after?: number
    lastEventId?: string
    via?: string
    /** As each of them comes. */
    onEvent?: (event: StreamEvent) => void
  }): Promise<EventStream>
}

export interface VisitorOptions {
  gatewayUrl: string
  origin: string
  siteKey: string
  /** The same one is the same browser; left out: a new one. */
  clientInstanceId?: string
  /** The same one creates the same session; left out: a new one. */
  creationKey?: string
  /** How long a call, or a stream's first byte, is waited for, in milliseconds; left out: for ever. */
  patienceMs?: number
}

/** A visitor's browser, less the browser: it follows the contract and keeps what it is told. */
export async function startVisitor({
  gatewayUrl,
  origin,
  siteKey,
  clientInstanceId = randomUUID(),
  creationKey = randomUUID(),
  patienceMs,
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
        ...(patienceMs !== undefined && { signal: AbortSignal.timeout(patienceMs) }),
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
      const patience = patienceMs === undefined ? undefined : setTimeout(() => abort.abort(), patienceMs)
      const response = await fetch(`${via}${base}/events${after === undefined ? '' : `?afterSequence=${after}`}`, {
        headers: {
          ...versioned,
          Accept: 'text/event-stream',
          Authorization: `Bearer ${visitor.session.accessGrant}`,
          ...(lastEventId === undefined ? {} : { 'Last-Event-ID': lastEventId }),
        },
        signal: abort.signal,
      }).finally(() => clearTimeout(patience))
      let lastSign = performance.now()
      const stream: EventStream = {
        status: response.status,
        headers: response.headers,
        events: [],
        comments: [],
        lastSign: () => lastSign,
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
          lastSign = performance.now()
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
