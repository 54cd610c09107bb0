import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { onTestFinished } from 'vitest'
import { SITE } from './test-core.ts'
import type { TestGateway } from './test-gateway.ts'
import { openSocket } from './test-socket.ts'

/** Opens a stream like a browser. Returns its text so far and whether it has ended. */
export async function openStream({ call }: TestGateway, path = '/events', headers: Record<string, string> = {}) {
  const abort = new AbortController()
  onTestFinished(() => abort.abort())
  const response = await call('GET', path, { headers, signal: abort.signal })
  const events: EventSourceMessage[] = []
  const comments: string[] = []
  const stream = {
    response,
    events,
    comments,
    retry: 0,
    text: '',
    ended: false,
    broken: false,
    abort: () => abort.abort(),
  }
  if (response.headers.get('content-type') !== 'text/event-stream') return stream
  const parser = createParser({
    onEvent: (event) => events.push(event),
    onComment: (comment) => comments.push(comment),
    onRetry: (ms) => {
      stream.retry = ms
    },
  })
  void (async () => {
    const decoder = new TextDecoder()
    for await (const chunk of response.body!) {
      const text = decoder.decode(chunk, { stream: true })
      stream.text += text
      parser.feed(text)
    }
    stream.ended = true
  })().catch(() => {
    stream.broken = true
  })
  return stream
}

/** Ids of the received events. */
export const ids = ({ events }: { events: EventSourceMessage[] }) => events.map(({ id }) => id)

/** Opens a stream over a bare socket. `after` is sent after the request. */
export const openRawStream = ({ port }: TestGateway, after = '', version = '1.1') =>
  openSocket(port, `${streamRequest(version)}${after}`, { allowHalfOpen: false })

export const streamRequest = (version = '1.1') =>
  `GET /api/integrations/v1/widget/events HTTP/${version}\r\nHost: x\r\nOrigin: ${SITE}\r\nX-Service-Widget-Version: 1.0\r\nAuthorization: Bearer grant-1\r\n\r\n`
