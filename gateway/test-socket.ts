import { connect, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { WIDGET_PREFIX } from './routes/widget.ts'
import { GRANT, SITE } from './test-core.ts'

/** A client on a bare socket. It keeps its own side open when the gateway ends the connection. */
export interface TestSocket {
  socket: Socket
  /** All received text. */
  text(): string
  /** Whether the gateway has ended its side. */
  isEnded(): boolean
}

export function openSocket(port: number, bytes = ''): TestSocket {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  onTestFinished(() => void socket.destroy())
  let text = ''
  let ended = false
  const markEnded = () => {
    ended = true
  }
  socket.setEncoding('latin1').on('data', (chunk) => {
    text += chunk
  })
  socket.on('end', markEnded).on('error', markEnded).on('close', markEnded)
  if (bytes !== '') socket.write(bytes, 'latin1')
  return { socket, text: () => text, isEnded: () => ended }
}

/** Encodes a request of the widget API with a correlation id. */
export function requestBytes(
  method: string,
  path: string,
  options: { id?: string; body?: unknown; more?: string } = {},
) {
  const { id = 'request', body, more = '' } = options
  const json = body === undefined ? '' : JSON.stringify(body)
  const bodyHeaders = body === undefined ? '' : `Content-Type: application/json\r\nContent-Length: ${json.length}\r\n`
  return (
    `${method} ${WIDGET_PREFIX}${path} HTTP/1.1\r\nHost: x\r\nOrigin: ${SITE}\r\nX-Service-Widget-Version: 1.0\r\n` +
    `Authorization: Bearer ${GRANT}\r\nIdempotency-Key: op-1\r\nX-Correlation-Id: ${id}\r\n${bodyHeaders}${more}\r\n${json}`
  )
}

export interface RawAnswer {
  status: number
  correlationId: string
  head: string
  body: string
}

/** Parses the answers on a connection in order. */
export function answersIn(text: string): RawAnswer[] {
  return text
    .split(/(?=HTTP\/1\.1 \d{3} )/)
    .filter(Boolean)
    .map((answer) => {
      const [head = '', ...body] = answer.split('\r\n\r\n')
      return {
        head,
        body: body.join('\r\n\r\n'),
        status: Number(head.split(' ')[1]),
        correlationId: /\r\nx-correlation-id: (\S+)/i.exec(head)?.[1] ?? '',
      }
    })
}
