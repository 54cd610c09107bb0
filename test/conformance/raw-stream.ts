import { openRawSocket, type RawSocket } from '../support/raw-socket.ts'
import { until } from '../support/until.ts'
import type { Visitor } from '../support/visitor.ts'
import { BASE } from './client.ts'
import { MissingAccess } from './missing-access.ts'
import type { StackWithClients } from './suite.ts'

/** Opens a connection to the first gateway and writes these bytes. */
export function openGateway({ stack }: StackWithClients, bytes: string, encoding?: BufferEncoding): RawSocket {
  const { protocol, hostname: host, port } = new URL(stack.gateways[0]!.url)
  if (protocol !== 'http:') throw new MissingAccess('a gateway that accepts connections without TLS')
  return openRawSocket(Number(port) || 80, bytes, { host, ...(encoding && { encoding }) })
}

/** Opens an event stream that is read as raw bytes. Uses HTTP/1.0, so that the body is not chunked. */
export function openRaw(target: StackWithClients, { session }: Visitor, query: string, headers = ''): RawSocket {
  const { demo, gateways } = target.stack
  const { host } = new URL(gateways[0]!.url)
  return openGateway(
    target,
    `GET ${BASE}/events${query} HTTP/1.0\r\nHost: ${host}\r\nOrigin: ${demo.origin}\r\n` +
      `X-Service-Widget-Version: 1.0\r\nAuthorization: Bearer ${session.accessGrant}\r\n${headers}\r\n`,
    'utf8',
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
