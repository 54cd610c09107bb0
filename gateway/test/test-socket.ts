import { onTestFinished } from 'vitest'
import { WIDGET_PREFIX } from '../../contract/public-api.ts'
import { openRawSocket, type RawSocket, type RawSocketOptions } from '../../test/support/raw-socket.ts'
import { GRANT, SITE } from './test-core.ts'

export { answersIn, type RawAnswer, type RawSocket as TestSocket } from '../../test/support/raw-socket.ts'

/** Opens a bare socket that is destroyed at the end of the test. */
export function openSocket(port: number, bytes = '', options: RawSocketOptions = {}): RawSocket {
  const opened = openRawSocket(port, bytes, options)
  onTestFinished(() => void opened.socket.destroy())
  return opened
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
