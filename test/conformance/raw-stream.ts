import { openRawSocket, type RawSocket } from '../support/raw-socket.ts'
import { until } from '../support/until.ts'
import type { Visitor } from '../support/visitor.ts'
import { BASE } from './client.ts'
import type { StackWithClients } from './suite.ts'

/** An event stream that is read as raw bytes. It uses HTTP/1.0, so that the body is not chunked. */
export function openRaw({ stack }: StackWithClients, { session }: Visitor, query: string, headers = ''): RawSocket {
  const { port, host } = new URL(stack.gateways[0]!.url)
  return openRawSocket(
    Number(port),
    `GET ${BASE}/events${query} HTTP/1.0\r\nHost: ${host}\r\nOrigin: ${stack.demo.origin}\r\n` +
      `X-Service-Widget-Version: 1.0\r\nAuthorization: Bearer ${session.accessGrant}\r\n${headers}\r\n`,
    { encoding: 'utf8' },
  )
}

/** Reads a stream until `enough` returns true, then closes it. */
export async function readRaw(
  stackWithClients: StackWithClients,
  visitor: Visitor,
  query: string,
  enough: (received: string) => boolean,
  headers = '',
): Promise<string> {
  const stream = openRaw(stackWithClients, visitor, query, headers)
  await until('the bytes', () => enough(stream.text()))
  stream.socket.destroy()
  return stream.text()
}
