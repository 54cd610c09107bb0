import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { extname, join } from 'node:path'
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError, type ConnectRouter, type Interceptor } from '@connectrpc/connect'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import { ErrorInfoSchema } from '#proto/error/v1/error_pb.js'
import { MessagingService, WatchConversationsResponseSchema } from '#proto/messaging/v1/messaging_pb.js'
import { OperatorService } from '#proto/operator/v1/operator_pb.js'
import { listen } from '../../test/support/listen.ts'
import { consoleDist } from '../build.ts'
import { fakeConversations } from './fake-conversations.ts'
import { fakeDesk } from './fake-desk.ts'
import { fakeLeads } from './fake-leads.ts'
import { fakeReport } from './fake-report.ts'
import { fakeSession } from './fake-session.ts'
import { fakeVisitors } from './fake-visitors.ts'
import { fakeWorkspace } from './fake-workspace.ts'

type Frame = MessageInitShape<typeof WatchConversationsResponseSchema>['frame']

/** The content security policy that the gateway sends with the console. */
export const pagePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "worker-src 'self'",
  "manifest-src 'self'",
  "require-trusted-types-for 'script'",
  'trusted-types service-worker',
].join('; ')

/**
 * A fault that a test injects into one call. With `afterwards`, the core executes the call and then returns an error.
 */
export type Fault = {
  code: Code
  info?: string
  afterwards?: boolean
  issues?: { path: string; rule: string }[]
}

/** Starts a core with its data in memory, at the gateway's paths that the console calls. Tests can inject faults. */
export async function startFakeCore() {
  const calls: { method: string; message: unknown }[] = []
  const faults = new Map<string, Fault[]>()
  const watchers = new Set<(frame: Frame | 'cut') => void>()
  let rejecting = false
  const session = fakeSession(() => rejecting)
  const publish = (frame: Frame) => {
    for (const watcher of watchers) watcher(frame)
  }
  const conversations = fakeConversations(publish)
  const visitors = fakeVisitors()
  const workspace = fakeWorkspace()
  const leads = fakeLeads()
  const report = fakeReport()

  const watch: Interceptor = (next) => async (request) => {
    const method = request.method.name
    const headers = Object.fromEntries(request.header)
    if (headers['x-service-console'] !== '1' || session.tokenOf({ headers } as never) === undefined)
      throw failure({ code: Code.Unauthenticated, info: 'Unauthenticated' })
    if (!request.stream) calls.push({ method, message: request.message })
    const fault = faults.get(method)?.shift()
    if (fault && !fault.afterwards) throw failure(fault)
    const response = await next(request)
    // Simulates a lost response: the call was executed, but the client gets an error.
    if (fault) throw failure(fault)
    return response
  }

  async function* watchConversations(_: unknown, { signal }: { signal: AbortSignal }) {
    const queue: (Frame | 'cut')[] = [{ case: 'ready', value: {} }, conversations.presenceFrame()]
    let wake = () => {}
    const push = (frame: Frame | 'cut') => {
      queue.push(frame)
      wake()
    }
    watchers.add(push)
    signal.addEventListener('abort', () => push('cut'))
    try {
      for (;;) {
        const frame = queue.shift()
        if (frame === 'cut') throw new ConnectError('cut', Code.Unavailable)
        if (frame) yield create(WatchConversationsResponseSchema, { frame })
        else await new Promise<void>((resolve) => (wake = resolve))
      }
    } finally {
      watchers.delete(push)
    }
  }

  const routes = (router: ConnectRouter) => {
    router.service(MessagingService, {
      ...conversations.methods,
      ...fakeDesk(),
      ...report.methods,
      watchConversations,
    })
    visitors.routes(router)
    workspace.routes(router)
    router.service(OperatorService, {
      listOperators: ({ includeRemoved }) => ({
        operators: [
          { operatorId: 'ada@example.com', name: 'Ada' },
          ...(includeRemoved ? [{ operatorId: 'op_jonas', name: 'Jonas Berg' }] : []),
        ],
      }),
    })
    leads.routes(router)
  }
  const rpc = connectNodeAdapter({ routes, requestPathPrefix: '/rpc', interceptors: [watch] })
  const server = createServer((request, response) => {
    if (request.url?.startsWith('/rpc/')) return rpc(request, response)
    if (request.url?.startsWith('/console/session/')) return void session.answer(request, response, workspaceSession())
    void servePage(request.url ?? '/').then(({ status, type, content }) => {
      response.writeHead(status, { 'Content-Type': type, 'Content-Security-Policy': pagePolicy })
      response.end(content)
    })
  })
  const { url, close } = await listen(server)

  return {
    url,
    conversations,
    visitors,
    workspace,
    leads,
    report,
    calls: (method: string) => calls.filter((call) => call.method === method).map(({ message }) => message as never),
    /** Injects faults into the next calls of a method. */
    fault: (method: string, ...more: Fault[]) => void faults.set(method, [...(faults.get(method) ?? []), ...more]),
    /** Rejects or accepts all sessions from now on. */
    rejectSessions(on: boolean) {
      rejecting = on
      if (on) for (const watcher of watchers) watcher('cut')
    },
    cutStreams() {
      for (const watcher of watchers) watcher('cut')
    },
    watcherCount: () => watchers.size,
    close,
  }
}

export type FakeCore = Awaited<ReturnType<typeof startFakeCore>>

export function failure({ code, info, issues = [] }: Fault): ConnectError {
  if (info === undefined) return new ConnectError('fault', code)
  return new ConnectError(info, code, undefined, [{ desc: ErrorInfoSchema, value: { code: info, issues } }])
}

export const at = (secondsAgo: number) => timestampFromMs(Date.now() - secondsAgo * 1000)

/** Returns a session token of an operator. The fake core does not verify its signature. */
export function workspaceSession({
  sub = 'ada@example.com',
  lifetime = 36_000,
  scope = 'messages:read messages:write sessions:read leads:read commands:read leads:deliver',
} = {}): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const claims = { aud: 'service.workspace', wid: 'ws_shop', sub, scope }
  const exp = Math.floor(Date.now() / 1000) + lifetime
  return `${part({ alg: 'HS256' })}.${part({ ...claims, exp })}.c2lnbmF0dXJl`
}

const types: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

async function servePage(path: string) {
  const { pathname } = new URL(path, 'http://console')
  const name = pathname.replace(/^\/console\//, '')
  const file = extname(name) === '' ? 'index.html' : name
  try {
    const content = await readFile(join(consoleDist, file))
    return { status: 200, type: types[extname(file)] ?? 'application/octet-stream', content }
  } catch {
    return { status: 404, type: 'text/plain', content: 'not found' }
  }
}
