import { createServer } from 'node:http'
import { Code, ConnectError, createClient } from '@connectrpc/connect'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import { createConnectTransport } from '@connectrpc/connect-web'
import { CommandService } from '#proto/command/v1/command_pb.js'
import { ErrorInfoSchema } from '#proto/error/v1/error_pb.js'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { WorkspaceService } from '#proto/workspace/v1/workspace_pb.js'
import { atFileEnd } from '../../test/support/clean-up.ts'
import { listen } from '../../test/support/listen.ts'
import { signWorkspaceSession } from '../../test/support/workspace-session.ts'
import { type GatewayOptions, startTestGateway } from './test-gateway.ts'

export const SEND = '/rpc/service.messaging.v1.MessagingService/SendAgentMessage'
export const LIST = '/rpc/service.messaging.v1.MessagingService/ListConversations'
export const GET = '/rpc/service.messaging.v1.MessagingService/GetConversation'
export const WATCH = '/rpc/service.messaging.v1.MessagingService/WatchConversations'

/** Starts a core over HTTP with the methods that operators call. */
async function startCore() {
  const core = {
    calls: [] as { method: string; headers: Headers; request: unknown }[],
    watching: 0,
    refuse: undefined as ConnectError | undefined,
    tell: () => {},
    /** The core answers a call after this promise has resolved. */
    held: undefined as Promise<void> | undefined,
  }
  const server = createServer(
    connectNodeAdapter({
      routes(router) {
        router.service(MessagingService, {
          async sendAgentMessage(request, { requestHeader }) {
            core.calls.push({ method: 'sendAgentMessage', headers: requestHeader, request })
            await core.held
            if (core.refuse) throw core.refuse
            return { message: { messageId: 'msg_1', body: request.body } }
          },
          async listConversations(request, { requestHeader }) {
            core.calls.push({ method: 'listConversations', headers: requestHeader, request })
            await core.held
            return { conversations: [] }
          },
          async getConversation(request, { requestHeader }) {
            core.calls.push({ method: 'getConversation', headers: requestHeader, request })
            return {}
          },
          async *watchConversations(_request, { signal }) {
            core.watching += 1
            try {
              yield { frame: { case: 'ready' as const, value: {} } }
              for (;;) {
                await new Promise<void>((resolve) => {
                  core.tell = resolve
                  signal.addEventListener('abort', () => resolve())
                })
                if (signal.aborted) return
                yield { frame: { case: 'heartbeat' as const, value: {} } }
              }
            } finally {
              core.watching -= 1
            }
          },
        })
        router.service(WorkspaceService, {
          async createConnection(request, { requestHeader }) {
            core.calls.push({ method: 'createConnection', headers: requestHeader, request })
            await core.held
            return {}
          },
        })
        router.service(CommandService, {
          async *getScreenshot({ commandId }) {
            yield { part: { case: 'header' as const, value: { commandId, byteLength: 600_000 } } }
            for (let n = 0; n < 6; n += 1)
              yield { part: { case: 'chunk' as const, value: new Uint8Array(100_000).fill(n) } }
          },
        })
      },
    }),
  )
  const { url, close: die } = await listen(server)
  return Object.assign(core, { url, die })
}

/** Starts a gateway with cores, and returns clients that send a workspace session. */
export async function startRpc({
  cores = 1,
  env,
  atEnd,
}: Pick<GatewayOptions, 'env' | 'atEnd'> & { cores?: number } = {}) {
  const session = await signWorkspaceSession({ claims: { scope: 'messages:read messages:write' } })
  const wired = await Promise.all(Array.from({ length: cores }, startCore))
  const gateway = await startTestGateway({ env: { CORE_URLS: wired.map(({ url }) => url).join(','), ...env }, atEnd })
  const transport = (format: 'json' | 'binary' = 'json', token = session) =>
    createConnectTransport({
      baseUrl: `${gateway.url}/rpc`,
      useBinaryFormat: format === 'binary',
      interceptors: [
        (next) => (request) => {
          request.header.set('authorization', `Bearer ${token}`)
          return next(request)
        },
      ],
    })
  return {
    ...gateway,
    session,
    wired,
    remote: wired[0]!,
    messaging: createClient(MessagingService, transport()),
    transport,
    post: (path: string, headers: Record<string, string> = {}, body: string | Uint8Array<ArrayBuffer> = '{}') =>
      fetch(`${gateway.url}${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${session}`, 'content-type': 'application/json', ...headers },
        body,
      }),
  }
}

/** Like `sharedGateway`, with a core that has got no call since the last use. */
export function sharedRpc() {
  let started: ReturnType<typeof startRpc> | undefined
  return async () => {
    started ??= startRpc({ env: { RATE_LIMIT_FACTOR: '100' }, atEnd: atFileEnd })
    const rpc = await started
    rpc.remote.calls.length = 0
    return rpc
  }
}

/** Returns the status and the error code of a failed call. */
export async function failureOf(call: Promise<unknown>) {
  const error = await call.then(
    () => new ConnectError('no failure'),
    (reason) => ConnectError.from(reason),
  )
  return [Code[error.code], error.findDetails(ErrorInfoSchema)[0]?.code]
}
