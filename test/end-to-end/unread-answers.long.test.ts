import http2 from 'node:http2'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { startDeliveryWorker } from '../support/delivery-worker.ts'
import { residentBytes } from '../support/proc.ts'
import { type Stack, startStack } from '../support/stack.ts'
import type { Visitor } from '../support/visitor.ts'
import { LARGE, MESSAGES } from './expensive-requests.ts'

const CLIENTS = 60
const PIPELINED = 90
const ROUNDS = 20
/** Bounds of docs/operating.md for unread answers: 64 MiB on public ports, 256 MiB on a core's port, and garbage. */
const PUBLIC_MAX_MIB = 250
const CORE_MAX_MIB = 500

interface Target {
  port: number
  pid: number
  /** Path that must keep answering. */
  healthPath: string
  maxMib: number
}

let stack: Stack
let visitor: Visitor
const targets: Record<string, Target> = {}
const portOf = (url: string) => Number(new URL(url).port)

beforeAll(async () => {
  stack = await startStack({ env: { RATE_LIMIT_FACTOR: '1000', LOG_LEVEL: 'warn' } })
  visitor = await stack.newVisitor()
  const { messaging } = stack.operator()
  for (let index = 0; index < MESSAGES; index++)
    await messaging.sendAgentMessage({
      conversationId: visitor.session.conversationId,
      clientOperationId: `large-${index}`,
      body: LARGE,
    })
  const worker = await startDeliveryWorker(stack)
  const core = stack.cores[0]!
  const gateway = stack.gateways[0]!
  const metrics = { healthPath: '/metrics', maxMib: PUBLIC_MAX_MIB }
  Object.assign(targets, {
    core: { port: portOf(core.url), pid: core.process().pid, healthPath: '/readyz', maxMib: CORE_MAX_MIB },
    gateway: { port: portOf(gateway.url), pid: gateway.process().pid, healthPath: '/readyz', maxMib: PUBLIC_MAX_MIB },
    'core metrics': { port: portOf(core.metricsUrl), pid: core.process().pid, ...metrics },
    'gateway metrics': { port: portOf(gateway.metricsUrl), pid: gateway.process().pid, ...metrics },
    'worker metrics': { port: portOf(worker.metricsUrl), pid: worker.process().pid, ...metrics },
    'worker health': {
      port: portOf(worker.healthUrl),
      pid: worker.process().pid,
      healthPath: '/readyz',
      maxMib: PUBLIC_MAX_MIB,
    },
  } satisfies Record<string, Target>)
}, 300_000)

const get = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: x\r\n${more}\r\n`

function post(path: string, type: string, body: string, token: string): string {
  return (
    `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: ${type}\r\n` +
    `Content-Length: ${body.length}\r\n\r\n${body}`
  )
}

const envelope = (json: string) => `\0\0\0\0${String.fromCharCode(json.length)}${json}`
const asVisitor = () =>
  `Origin: ${stack.demo.origin}\r\nX-Service-Widget-Version: 1.0\r\nAuthorization: Bearer ${visitor.session.accessGrant}\r\n`
const page = () => JSON.stringify({ conversationId: visitor.session.conversationId, limit: 100 })
const workspace = () => JSON.stringify({ workspaceId: stack.demo.workspaceId })
const owner = () => JSON.stringify({ visitor: { sessionId: visitor.session.sessionId } })
const atCore = (method: string, type: string, body: string) =>
  post(`/service.${method}`, type, body, stack.demo.serviceToken)
const atGateway = (method: string, type: string, body: string) =>
  post(`/rpc/service.${method}`, type, body, stack.demo.workspaceSession)
const [json, stream] = ['application/json', 'application/connect+json']

const cases: [part: string, what: string, request: () => string][] = [
  ['core', 'pages', () => atCore('messaging.v1.MessagingService/ListMessages', json, page())],
  ['core', 'exports', () => atCore('privacy.v1.PrivacyService/ExportVisitor', stream, envelope(owner()))],
  ['core', 'inboxes', () => atCore('messaging.v1.MessagingService/WatchConversations', stream, envelope(workspace()))],
  ['core', 'errors', () => get('/unknown')],
  ['gateway', 'pages', () => get('/api/integrations/v1/widget/messages?limit=100', asVisitor())],
  ['gateway', 'streams', () => get('/api/integrations/v1/widget/events?afterSequence=0', asVisitor())],
  ['gateway', 'pages of operators', () => atGateway('messaging.v1.MessagingService/ListMessages', json, page())],
  ['gateway', 'inboxes', () => atGateway('messaging.v1.MessagingService/WatchConversations', stream, envelope('{}'))],
  ['gateway', 'the API description', () => get('/docs/openapi.json')],
  ['gateway', 'scripts of the documentation', () => get('/docs/js/scalar.js')],
  ['gateway', 'the widget', () => get('/widget.js')],
  ['gateway', 'the console', () => get('/console/')],
  ['gateway', 'errors', () => get('/unknown')],
  ['core metrics', 'metrics', () => get('/metrics')],
  ['gateway metrics', 'metrics', () => get('/metrics')],
  ['worker metrics', 'metrics', () => get('/metrics')],
  ['worker health', 'health', () => get('/readyz')],
]

/** Sends while `attack` keeps its answers unread. Returns the growth of the memory in MiB, and failed probes. */
async function observe({ port, pid, healthPath }: Target, keepAttacking: () => void) {
  const mebibytes = async () => (await residentBytes(pid)) / 2 ** 20
  const quiet = await mebibytes()
  let peak = quiet
  const failures: unknown[] = []
  for (let round = 0; round < ROUNDS; round++) {
    keepAttacking()
    // New events for the streams.
    for (let sent = 0; sent < 5; sent++) await visitor.send(LARGE)
    const status = await fetch(`http://127.0.0.1:${port}${healthPath}`).then(
      async (response) => {
        await response.arrayBuffer()
        return response.status
      },
      (error: Error) => error.message,
    )
    if (status !== 200) failures.push(status)
    await delay(100)
    peak = Math.max(peak, await mebibytes())
  }
  return { growth: Math.round(peak - quiet), quiet: Math.round(quiet), failures }
}

describe('clients that do not read, or read slowly, cost bounded memory', () => {
  it.each(cases)('%s: %s', { timeout: 180_000 }, async (part, what, request) => {
    const target = targets[part]!
    const open = new Set<Socket>()
    onTestFinished(() => {
      for (const socket of open) socket.destroy()
    })
    const bytes = request().repeat(PIPELINED)
    const { growth, quiet, failures } = await observe(target, () => {
      for (let index = open.size; index < CLIENTS; index++) {
        const socket = connect({ port: target.port, host: '127.0.0.1' }).pause()
        open.add(socket)
        socket.on('error', () => socket.destroy()).on('close', () => open.delete(socket))
        socket.write(bytes, 'latin1')
      }
      // A third of the clients read a little.
      for (const [index, socket] of [...open].entries())
        if (index % 3 === 0) socket.once('data', () => socket.pause()).resume()
    })
    console.info(`${part}, ${what}: ${quiet} MiB + ${growth} MiB`)
    expect(failures).toEqual([])
    expect(growth).toBeLessThan(target.maxMib)
  })

  it.each([
    ['pages', 'messaging.v1.MessagingService/ListMessages', 'application/json', page],
    ['exports', 'privacy.v1.PrivacyService/ExportVisitor', 'application/connect+json', () => envelope(owner())],
    [
      'inboxes',
      'messaging.v1.MessagingService/WatchConversations',
      'application/connect+json',
      () => envelope(workspace()),
    ],
  ])('core over HTTP/2: %s', { timeout: 180_000 }, async (what, method, type, body) => {
    const target = targets.core!
    const sessions = Array.from({ length: 6 }, () =>
      http2.connect(`http://127.0.0.1:${target.port}`, { settings: { initialWindowSize: 0 } }).on('error', () => {}),
    )
    onTestFinished(() => {
      for (const session of sessions) session.destroy()
    })
    const { growth, quiet, failures } = await observe(target, () => {
      for (const session of sessions)
        for (let count = 0; count < 15 && !session.destroyed; count++)
          session
            .request({
              ':method': 'POST',
              ':path': `/service.${method}`,
              'content-type': type,
              authorization: `Bearer ${stack.demo.serviceToken}`,
            })
            .on('error', () => {})
            .end(Buffer.from(body(), 'latin1'))
    })
    console.info(`core over HTTP/2, ${what}: ${quiet} MiB + ${growth} MiB`)
    expect(failures).toEqual([])
    expect(growth).toBeLessThan(target.maxMib)
  })
})
