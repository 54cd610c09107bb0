// Load process: makes requests of one kind over a number of connections. Arguments: the gateway's port,
// the core's port and the file with the credentials of the demo.
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createClient } from '@connectrpc/connect'
import { CommandService } from '#proto/command/v1/command_pb.js'
import { WorkspaceService } from '#proto/workspace/v1/workspace_pb.js'
import { connectService } from '../../core-client/index.ts'
import { handleCommands } from '../commands.ts'
import { type HttpConnection, openConnection } from '../http-connection.ts'
import { quantile } from '../table.ts'
import { type BenchVisitor, createVisitors, pageHeaders, readHistory, sendMessage, widgetPath } from '../visitors.ts'

export interface LoadCommand {
  kind: RequestKind
  connections: number
  warmUpMs: number
  measuredMs: number
}

export interface Load {
  /** Number of requests begun in the measured time. */
  count: number
  /** Time from the start of the measurement until the last answer. */
  seconds: number
  /** Number of requests answered, including the warm-up. */
  answered: number
  p50: number
  p99: number
}

interface Visitor extends BenchVisitor {
  renewalToken: string
  /** Id of a navigation request that the visitor has accepted. */
  commandId: string
}

/**
 * Visitors of the load. Requests use connections and visitors in turn. Because this number is a
 * multiple of the number of connections, each visitor always has the same connection.
 */
const visitorCount = 256
const historyLength = 25
const atOnce = 16
const [gatewayPort = '', corePort = '', demoFile = ''] = process.argv.slice(2)
const port = Number(gatewayPort)
const { serviceToken, siteKey } = JSON.parse(await readFile(demoFile, 'utf8'))
const { transport: core } = await connectService({ urls: [`http://127.0.0.1:${corePort}`], token: serviceToken })
await createClient(WorkspaceService, core).updateInstallation({ siteKey, origins: [pageHeaders.Origin] })
const visitors = (await createVisitors(port, visitorCount)) as Visitor[]
await inLanes(prepare)

/** Requests by kind. Each throws if the status is not the expected one. */
const requests = {
  livez: (on: HttpConnection) => expectStatus(200, on.send('GET', '/livez', {})),
  config: (on: HttpConnection) => expectStatus(200, on.send('GET', `${widgetPath}/config/${siteKey}`, pageHeaders)),
  page: (on: HttpConnection, visitor: Visitor) => readHistory(on, visitor, 'limit=20'),
  typing: (on: HttpConnection, visitor: Visitor) => post(on, visitor, 204, '/typing', { state: 'started' }),
  'page context': (on: HttpConnection, visitor: Visitor) =>
    post(on, visitor, 204, '/context/page', { url: 'https://shop.example/cart', title: 'Cart' }),
  acknowledgement: (on: HttpConnection, visitor: Visitor) => acknowledge(on, visitor),
  renewal: async (on: HttpConnection, visitor: Visitor) => {
    const { sessionId, renewalToken } = visitor
    const { body } = await post(on, visitor, 200, '/sessions/renew', { sessionId, renewalToken })
    Object.assign(visitor, JSON.parse(body))
  },
  send: (on: HttpConnection, visitor: Visitor) => sendMessage(on, visitor),
}

export type RequestKind = keyof typeof requests

async function expectStatus<Answer extends { status: number; body: string }>(
  status: number,
  sent: Promise<Answer>,
): Promise<Answer> {
  const answer = await sent
  if (answer.status !== status) throw new Error(`unexpected answer: ${answer.status} ${answer.body}`)
  return answer
}

function post(on: HttpConnection, { accessGrant }: Visitor, status: number, path: string, body: object) {
  const headers = {
    ...pageHeaders,
    'Content-Type': 'application/json',
    Authorization: `Bearer ${accessGrant}`,
    'Idempotency-Key': randomUUID(),
  }
  return expectStatus(status, on.send('POST', `${widgetPath}${path}`, headers, JSON.stringify(body)))
}

/** Acknowledges the navigation request. Each call sends the same outcome with a new key. */
function acknowledge(on: HttpConnection, visitor: Visitor) {
  const path = `/commands/navigation/${visitor.commandId}/acknowledgements`
  return post(on, visitor, 200, path, { outcome: 'accepted' })
}

/** Writes a page of history and creates an accepted navigation request. */
async function prepare(on: HttpConnection, visitor: Visitor) {
  for (let sent = 0; sent < historyLength; sent += 1) await sendMessage(on, visitor)
  const { command } = await createClient(CommandService, core).requestNavigation({
    sessionId: visitor.sessionId,
    url: `${pageHeaders.Origin}/cart`,
  })
  visitor.commandId = command?.commandId ?? ''
  await acknowledge(on, visitor)
}

async function inLanes(work: (on: HttpConnection, visitor: Visitor) => Promise<unknown>) {
  let next = 0
  const lane = async () => {
    const connection = await openConnection(port)
    while (next < visitors.length) await work(connection, visitors[next++] as Visitor)
    connection.close()
  }
  await Promise.all(Array.from({ length: atOnce }, lane))
}

handleCommands(async ({ kind, connections, warmUpMs, measuredMs }: LoadCommand): Promise<Load> => {
  const begin = performance.now() + warmUpMs
  const end = begin + measuredMs
  const waits: number[] = []
  let answered = 0

  const lane = async (_: unknown, index: number) => {
    const connection = await openConnection(port)
    for (let turn = index; ; turn = (turn + connections) % visitors.length) {
      const at = performance.now()
      if (at >= end) break
      await requests[kind](connection, visitors[turn] as Visitor)
      answered += 1
      if (at >= begin) waits.push(performance.now() - at)
    }
    connection.close()
  }
  await Promise.all(Array.from({ length: connections }, lane))
  const seconds = (performance.now() - begin) / 1000
  return { count: waits.length, seconds, answered, p50: quantile(waits, 0.5), p99: quantile(waits, 0.99) }
})
