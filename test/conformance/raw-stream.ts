import { connect } from 'node:net'
import { until } from '../support/until.ts'
import type { Visitor } from '../support/visitor.ts'
import { BASE } from './client.ts'
import type { Scene } from './suite.ts'

/** An event stream as raw bytes. Uses HTTP/1.0, so that the body is not chunked. */
export interface RawStream {
  received(): string
  pause(): void
  resume(): void
  /** Resolves when either side has closed the connection. */
  ended: Promise<void>
  close(): void
}

export function openRaw({ stack }: Scene, { session }: Visitor, query: string, headers = ''): RawStream {
  const { port, host } = new URL(stack.gateways[0]!.url)
  const socket = connect(Number(port), '127.0.0.1')
  let received = ''
  socket.setEncoding('utf8').on('data', (chunk) => {
    received += chunk
  })
  const ended = new Promise<void>((resolve) => socket.on('close', () => resolve()).on('error', () => resolve()))
  socket.write(
    `GET ${BASE}/events${query} HTTP/1.0\r\nHost: ${host}\r\nOrigin: ${stack.demo.origin}\r\nX-Service-Widget-Version: 1.0\r\n` +
      `Authorization: Bearer ${session.accessGrant}\r\n${headers}\r\n`,
  )
  return {
    ended,
    received: () => received,
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    close: () => void socket.destroy(),
  }
}

/** Reads a stream until `enough` returns true, then closes it. */
export async function readRaw(
  scene: Scene,
  visitor: Visitor,
  query: string,
  enough: (received: string) => boolean,
  headers = '',
): Promise<string> {
  const stream = openRaw(scene, visitor, query, headers)
  await until('the bytes', () => enough(stream.received()))
  stream.close()
  return stream.received()
}
