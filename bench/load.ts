// Load process. Argument: the file with the access to the service, or kind and port of another server, such as
// `bare:8080`.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import http, { type IncomingMessage } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { createClient } from '@connectrpc/connect'
import { CommandService } from '#proto/command/v1/command_pb.js'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { connectService } from '../core-client/index.ts'
import { clock, handleCommands } from './commands.ts'
import type { Figures } from './measure.ts'
import { streamCount } from './rivals/message-stores.ts'
import type { Access } from './service.ts'
import { quantile } from './table.ts'
import {
  type BenchVisitor,
  createVisitors,
  expectStatus,
  type HttpConnection,
  inLanes,
  json,
  openConnection,
  pageHeaders,
  postAs,
  readHistory,
  sendMessage,
  text,
  widgetPath,
} from './visitors.ts'

export type LoadCommand =
  /** Makes requests on each connection one after the other, for a time or a number of `times`. */
  | { do: 'requests'; kind: Kind; connections: number; warmUpMs?: number; measuredMs?: number; times?: number }
  /** Measures until the visitor's stream has each message of an agent. Meanwhile visitors send others. */
  | { do: 'talk'; count: number; pauseMs: number; besideEachSecond: number }
  /** Sets the length of the first conversation, for the kind `largest page`. */
  | { do: 'setLargest'; length: number }
  | { do: 'visitors' }

/** A multiple of the connections, so that no visitor has two messages under way. */
const visitorCount = 256
const historyLength = 25
const [target = ''] = process.argv.slice(2)
const [kind = '', otherPort] = target.split(':')
const access = otherPort === undefined ? (JSON.parse(await readFile(target, 'utf8')) as Access) : undefined
const port = access?.ports[0] ?? Number(otherPort)
const core = access && (await connectService({ urls: [access.coreUrl], token: access.serviceToken })).transport

interface Visitor extends BenchVisitor {
  renewalToken: string
  /** Navigation request that the visitor has accepted. */
  commandId?: string
}
const visitors = access ? ((await createVisitors(port, access.siteKey, visitorCount)) as Visitor[]) : []
let sent = 0
let largest = 0
let turns = 0

async function send(on: HttpConnection, visitor: Visitor | undefined, turn: number) {
  if (visitor) await sendMessage(on, visitor)
  else await sendToOther(on, turn % streamCount)
  sent += 1
}

const requests = {
  livez: (on: HttpConnection) => expectStatus(200, on.send('GET', '/livez', {})),
  config: (on: HttpConnection) =>
    expectStatus(200, on.send('GET', `${widgetPath}/config/${access!.siteKey}`, pageHeaders)),
  page: (on: HttpConnection, visitor: Visitor) => readHistory(on, visitor, 'limit=20'),
  typing: (on: HttpConnection, visitor: Visitor) => postAs(on, visitor, 204, '/typing', { state: 'started' }),
  'page context': (on: HttpConnection, visitor: Visitor) =>
    postAs(on, visitor, 204, '/context/page', { url: 'https://shop.example/cart', title: 'Cart' }),
  acknowledgement: (on: HttpConnection, visitor: Visitor) => acknowledge(on, visitor),
  renewal: async (on: HttpConnection, visitor: Visitor) => {
    const { sessionId, renewalToken } = visitor
    const { body } = await postAs(on, visitor, 200, '/sessions/renew', { sessionId, renewalToken })
    Object.assign(visitor, JSON.parse(body))
  },
  send,
  'largest page': (on: HttpConnection) =>
    readHistory(on, visitors[0]!, `limit=20&beforeSequence=${21 + ((turns++ * 7_919) % largest)}`),
  'largest send': (on: HttpConnection) => send(on, visitors[0]!, 0),
}
export type Kind = keyof typeof requests

/** Acknowledges the request. Each call sends the same outcome with a new key. */
const acknowledge = (on: HttpConnection, visitor: Visitor) =>
  postAs(on, visitor, 200, `/commands/navigation/${visitor.commandId}/acknowledgements`, { outcome: 'accepted' })

async function prepareOnce() {
  if (visitors[0]?.commandId !== undefined) return
  await inLanes(port, visitors, async (on, visitor) => {
    for (let count = 0; count < historyLength; count += 1) await send(on, visitor, 0)
    const request = { sessionId: visitor.sessionId, url: `${pageHeaders.Origin}/cart` }
    visitor.commandId = (await createClient(CommandService, core!).requestNavigation(request)).command!.commandId
    await acknowledge(on, visitor)
  })
}

function messageTo(stream: number): [path: string, body: object] {
  const message = { clientOperationId: randomUUID(), body: text, contentType: 'text' }
  return [kind === 'streams' ? `/streams/${stream}` : '/messages', message]
}

async function sendToOther(connection: HttpConnection, stream: number): Promise<void> {
  const [path, body] = messageTo(stream)
  const answer = await connection.send('POST', path, json, JSON.stringify(body))
  if (answer.status >= 300) throw new Error(`not accepted: ${answer.status} ${answer.body}`)
}

async function makeRequests(command: LoadCommand & { do: 'requests' }): Promise<Figures> {
  const { connections, warmUpMs = 0, measuredMs = Number.POSITIVE_INFINITY, times = Number.POSITIVE_INFINITY } = command
  const request = requests[command.kind]
  const sentBefore = sent
  // A filled store already has the pages.
  if (largest === 0 && ['page', 'acknowledgement'].includes(command.kind)) await prepareOnce()
  const begin = performance.now() + warmUpMs
  const waits: number[] = []
  let done = 0
  const lane = async (_: unknown, index: number) => {
    const connection = await openConnection(port)
    for (let turn = index; done < times; turn = (turn + connections) % visitorCount) {
      const at = performance.now()
      if (at >= begin + measuredMs) break
      await request(connection, visitors[turn] as Visitor, turn)
      done += 1
      if (at >= begin) waits.push(performance.now() - at)
    }
    connection.close()
  }
  await Promise.all(Array.from({ length: connections }, lane))
  const seconds = (performance.now() - begin) / 1000
  const [p50, p99] = [quantile(waits, 0.5), quantile(waits, 0.99)]
  return { rate: waits.length / seconds, p50, p99, done, sent: sent - sentBefore }
}

function sendSteadily(eachSecond: number, lanes = 50): () => Promise<unknown> {
  let isOver = eachSecond === 0
  const everyMs = (1000 * lanes) / eachSecond
  const lane = async (_: unknown, index: number) => {
    const connection = await openConnection(port)
    let next = performance.now() + (everyMs * index) / lanes
    for (let turn = index + 1; !isOver; turn = 1 + ((turn + lanes - 1) % (visitorCount - 1)), next += everyMs) {
      await delay(Math.max(0, next - performance.now()))
      await send(connection, visitors[turn], turn)
    }
    connection.close()
  }
  const all = isOver ? Promise.resolve() : Promise.all(Array.from({ length: lanes }, lane))
  return () => {
    isOver = true
    return all
  }
}

async function openStream() {
  const [first] = visitors
  const headers = {
    ...pageHeaders,
    Accept: 'text/event-stream',
    ...(first && { Authorization: `Bearer ${first.accessGrant}` }),
  }
  const request = http.get({
    host: '127.0.0.1',
    port,
    path: first ? `${widgetPath}/events` : '/sub/0',
    headers,
    agent: false,
  })
  const [stream] = (await once(request, 'response')) as [IncomingMessage]
  let unread = ''
  let wanted = ''
  let arrived: (at: number) => void = () => {}
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    unread += chunk
    if (wanted === '' || !unread.includes(wanted)) return
    unread = wanted = ''
    arrived(clock())
  })
  stream.on('error', () => {})
  return {
    arrivalOf: (body: string) =>
      new Promise<number>((resolve) => {
        wanted = body
        arrived = resolve
      }),
    close: () => request.destroy(),
  }
}

async function talk({ count, pauseMs, besideEachSecond }: LoadCommand & { do: 'talk' }): Promise<Figures> {
  const messaging = core && createClient(MessagingService, core)
  const connection = await openConnection(port)
  const stream = await openStream()
  const sentBefore = sent
  const stopSending = sendSteadily(besideEachSecond)
  const began = performance.now()
  const waits: number[] = []
  const say = async () => {
    const clientOperationId = randomUUID()
    const body = `We do, and it will be there by Friday. ${clientOperationId}`
    const arrival = stream.arrivalOf(body)
    const at = clock()
    const { conversationId = '' } = visitors[0] ?? {}
    const answered = messaging
      ? messaging.sendAgentMessage({ conversationId, clientOperationId, body, agent: { displayName: 'Ada' } })
      : connection.send('POST', '/pub/0', json, JSON.stringify({ body }))
    waits.push((await arrival) - at)
    await answered
    sent += 1
  }
  for (let said = 0; said < count; said += 1) {
    await delay(pauseMs)
    await say()
  }
  await stopSending()
  const seconds = (performance.now() - began) / 1000
  stream.close()
  connection.close()
  const all = sent - sentBefore
  const [p50, p99] = [quantile(waits, 0.5), quantile(waits, 0.99)]
  return { p50, p99, beside: (all - count) / seconds, done: all, sent: all }
}

// A first message costs more, because it also binds the session to the conversation.
await inLanes(port, visitors, (on, visitor) => sendMessage(on, visitor))

handleCommands(async (command: LoadCommand) => {
  if (command.do === 'requests') return makeRequests(command)
  if (command.do === 'talk') return talk(command)
  if (command.do === 'setLargest') largest = command.length
  return visitors.map(({ sessionId, conversationId }) => ({ sessionId, conversationId }))
})
