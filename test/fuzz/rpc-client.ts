import { type ClientHttp2Session, connect } from 'node:http2'
import { NoAnswer } from './raw-client.ts'

/** A call as it goes over the wire. */
export interface RpcRequest {
  /** `/service.messaging.v1.MessagingService/SendAgentMessage` */
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
  /** @throws NoAnswer; the stream's error where the core breaks it off */
  call(request: RpcRequest): Promise<RpcAnswer>
  close(): void
}

const answerWithinMs = 60_000
/** A call that stays open is left after this long a silence, in milliseconds. */
const glanceMs = 150

/** Calls of a core over HTTP/2, on one connection that is made anew when it is lost. */
export function createRpcClient(coreUrl: string): RpcClient {
  let session: ClientHttp2Session | undefined

  function live(): ClientHttp2Session {
    if (session === undefined || session.closed || session.destroyed) {
      session = connect(coreUrl)
      session.on('error', () => {})
    }
    return session
  }

  return {
    call({ path, headers, body }) {
      return new Promise((resolve, reject) => {
        const stream = live().request({ ':method': 'POST', ':path': path, ...headers })
        const answer: RpcAnswer = { status: 0, headers: {}, trailers: {}, body: Buffer.alloc(0) }
        const chunks: Buffer[] = []
        const deadline = setTimeout(() => reject(new NoAnswer(`no answer to ${path}`)), answerWithinMs)
        let glance: NodeJS.Timeout | undefined
        function finish() {
          clearTimeout(deadline)
          clearTimeout(glance)
          answer.body = Buffer.concat(chunks)
          resolve(answer)
          stream.close()
        }
        function look() {
          clearTimeout(glance)
          const stays = /^application\/(connect\+|grpc)/.test(answer.headers['content-type'] ?? '')
          if (stays) glance = setTimeout(finish, glanceMs)
        }
        stream.on('response', (given) => {
          answer.status = Number(given[':status'])
          answer.headers = given as Record<string, string>
          look()
        })
        stream.on('trailers', (given) => {
          answer.trailers = given as Record<string, string>
        })
        stream.on('data', (chunk) => {
          chunks.push(chunk)
          look()
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
