import { connect, type Socket } from 'node:net'

/** A client that reads and writes text on a TCP socket. */
export interface RawSocket {
  socket: Socket
  /** All received text. */
  text(): string
  /** Returns true if the server has ended its side of the connection. */
  isEnded(): boolean
  /** Time when the server ended its side, measured with `performance.now()`. 0 if the server has not ended it. */
  endedAt: number
  /** Time when the connection was reset, measured with `performance.now()`. 0 if no reset has arrived. */
  brokenAt: number
  /** Resolves with all received text when the server has ended its side. */
  ended: Promise<string>
  /** Resolves with all received text when the connection is closed on both sides. */
  closed: Promise<string>
}

export interface RawSocketOptions {
  encoding?: BufferEncoding
  /** If true, the client keeps its side of the connection open after the server has ended its side. Default: true. */
  allowHalfOpen?: boolean
  /** Default: 127.0.0.1. */
  host?: string
}

export function openRawSocket(
  port: number,
  bytes = '',
  { encoding = 'latin1', allowHalfOpen = true, host = '127.0.0.1' }: RawSocketOptions = {},
): RawSocket {
  const socket = connect({ port, host, allowHalfOpen })
  const closing = Promise.withResolvers<string>()
  const { promise: ended, resolve } = Promise.withResolvers<string>()
  let text = ''
  const client: RawSocket = {
    socket,
    text: () => text,
    isEnded: () => client.endedAt > 0,
    endedAt: 0,
    brokenAt: 0,
    ended,
    closed: closing.promise,
  }
  const markEnded = () => {
    client.endedAt ||= performance.now()
    resolve(text)
  }
  socket.setEncoding(encoding).on('data', (chunk) => {
    text += chunk
  })
  socket.on('error', () => {
    client.brokenAt ||= performance.now()
  })
  socket.on('end', markEnded).on('error', markEnded).on('close', markEnded)
  socket.on('close', () => closing.resolve(text))
  if (bytes !== '') socket.write(bytes, encoding)
  return client
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
