import { type ClientHttp2Session, connect } from 'node:http2'
import { NoAnswer } from './raw-client.ts'

/** An RPC call whose headers and body may be invalid. */
export interface RpcRequest {
  /** Path, for example `/service.messaging.v1.MessagingService/SendAgentMessage`. */
  path: string
  headers: Record<string, string>
  body: Uint8Array
}

export interface RpcAnswer {
  status: number
  headers: Record<string, string>
  trailers: Record<string, string>
  body: Buffer
}

export interface RpcClient {
  /** @throws NoAnswer, or the error of the HTTP/2 stream if the core resets the stream */
  call(request: RpcRequest): Promise<RpcAnswer>
  close(): void
}

const answerWithinMs = 60_000
/** A streaming call is closed after this number of milliseconds without data. */
const idleMs = 150

/** Calls a core over one HTTP/2 connection. Reconnects when the connection is lost. */
export function createRpcClient(coreUrl: string): RpcClient {
  let session: ClientHttp2Session | undefined

  function currentSession(): ClientHttp2Session {
    if (session === undefined || session.closed || session.destroyed) {
      session = connect(coreUrl)
      session.on('error', () => {})
    }
    return session
  }

  return {
    call({ path, headers, body }) {
      return new Promise((resolve, reject) => {
        const stream = currentSession().request({ ':method': 'POST', ':path': path, ...headers })
        const answer: RpcAnswer = { status: 0, headers: {}, trailers: {}, body: Buffer.alloc(0) }
        const chunks: Buffer[] = []
        const deadline = setTimeout(() => reject(new NoAnswer(`no answer to ${path}`)), answerWithinMs)
        let idleTimer: NodeJS.Timeout | undefined
        function finish() {
          clearTimeout(deadline)
          clearTimeout(idleTimer)
          answer.body = Buffer.concat(chunks)
          resolve(answer)
          stream.close()
        }
        function restartIdleTimer() {
          clearTimeout(idleTimer)
          const isStreaming = /^application\/(connect\+|grpc)/.test(answer.headers['content-type'] ?? '')
          if (isStreaming) idleTimer = setTimeout(finish, idleMs)
        }
        stream.on('response', (given) => {
          answer.status = Number(given[':status'])
          answer.headers = given as Record<string, string>
          restartIdleTimer()
        })
        stream.on('trailers', (given) => {
          answer.trailers = given as Record<string, string>
        })
        stream.on('data', (chunk) => {
          chunks.push(chunk)
          restartIdleTimer()
        })
        stream.on('end', finish)
        stream.on('error', (error) => {
          clearTimeout(deadline)
          if (answer.status > 0) finish()
          else reject(error)
        })
        stream.end(body)
      })
    },
    close: () => session?.destroy(),
  }
}
