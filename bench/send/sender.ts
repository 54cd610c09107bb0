// Load process: sends messages over a number of connections. Arguments: the kind of server, and its port.
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { handleCommands } from '../commands.ts'
import { type HttpConnection, openConnection } from '../http-connection.ts'
import { quantile } from '../table.ts'
import { type BenchVisitor, createVisitors, readHistory, sendMessage } from '../visitors.ts'
import { type SenderKind, streamCount, visitorCount } from './sender-settings.ts'

export type SenderCommand =
  | { do: 'send'; connections: number; warmUpMs: number; measuredMs: number }
  /** Starts to send messages at a fixed rate. The command `end` stops this. */
  | { do: 'begin'; eachSecond: number }
  | { do: 'end' }
  /** Returns the number of messages in all conversations, without each visitor's first message. */
  | { do: 'count' }

export interface Sent {
  /** Number of messages acknowledged in the measured time. */
  count: number
  seconds: number
  p50: number
  p99: number
  /** Number of messages acknowledged, including the warm-up. */
  acknowledged: number
}

const [kind = 'bare', port = ''] = process.argv.slice(2) as [SenderKind?, string?]
const visitors: BenchVisitor[] = kind === 'service' ? await createVisitors(Number(port), visitorCount) : []
/**
 * Number of messages that were sent before the measurement: the first message of each visitor. A
 * first message costs more, because it also binds the session to the conversation.
 */
let earlier = 0
const json = { 'Content-Type': 'application/json' }

/** Returns the path and the body of a message to another server. */
function messageTo(stream: number): [path: string, body: object] {
  const text = 'Do you ship to Graz? I would like to have it there by Friday.'
  const message = { clientOperationId: randomUUID(), body: text, contentType: 'text' }
  if (kind === 'streams') return [`/streams/${stream}`, message]
  if (kind === 'nchan') return [`/pub/${stream}`, message]
  if (kind === 'bare') return ['/messages', message]
  const to = { from: 'agent@localhost', to: `user${stream}@localhost` }
  return ['/api/send_message', { type: 'chat', subject: '', body: text, ...to }]
}

async function sendToOther(connection: HttpConnection, turn: number): Promise<void> {
  const [path, body] = messageTo(turn % streamCount)
  const answer = await connection.send('POST', path, json, JSON.stringify(body))
  if (answer.status >= 300) throw new Error(`not accepted: ${answer.status} ${answer.body}`)
}

async function send({ connections, warmUpMs, measuredMs }: SenderCommand & { do: 'send' }): Promise<Sent> {
  const begin = performance.now() + warmUpMs
  const end = begin + measuredMs
  const waits: number[] = []
  let acknowledged = 0

  /** Each connection has its own visitors, so that no visitor has two messages in flight. */
  const lane = async (_: unknown, index: number) => {
    const connection = await openConnection(Number(port))
    for (let turn = index; ; turn = (turn + connections) % visitorCount) {
      const at = performance.now()
      if (at >= end) break
      const visitor = visitors[turn]
      await (visitor ? sendMessage(connection, visitor) : sendToOther(connection, turn))
      acknowledged += 1
      const answeredAt = performance.now()
      if (at >= begin && answeredAt < end) waits.push(answeredAt - at)
    }
    connection.close()
  }
  await Promise.all(Array.from({ length: connections }, lane))
  const count = waits.length
  return { count, seconds: measuredMs / 1000, p50: quantile(waits, 0.5), p99: quantile(waits, 0.99), acknowledged }
}

const steadyConnections = 50
let steadily = false
let steady: Promise<unknown> = Promise.resolve()

function begin(eachSecond: number) {
  steadily = true
  const everyMs = (1000 * steadyConnections) / eachSecond
  const lane = async (_: unknown, index: number) => {
    const connection = await openConnection(Number(port))
    let next = performance.now() + (everyMs * index) / steadyConnections
    for (let turn = index; steadily; turn = (turn + steadyConnections) % visitors.length, next += everyMs) {
      await delay(Math.max(0, next - performance.now()))
      await sendMessage(connection, visitors[turn] as BenchVisitor)
    }
    connection.close()
  }
  steady = Promise.all(Array.from({ length: steadyConnections }, lane))
}

async function end() {
  steadily = false
  await steady
}

async function writeFirst(): Promise<void> {
  const lane = async () => {
    const connection = await openConnection(Number(port))
    while (earlier < visitors.length) await sendMessage(connection, visitors[earlier++] as BenchVisitor)
    connection.close()
  }
  await Promise.all(Array.from({ length: 16 }, lane))
}

/** Number of messages in all conversations, without each visitor's first message. */
async function count(): Promise<number> {
  const connection = await openConnection(Number(port))
  let found = 0
  for (const visitor of visitors) found += (await readHistory(connection, visitor, 'limit=1')).lastSequence
  connection.close()
  return found - earlier
}

await writeFirst()

handleCommands(async (command: SenderCommand) => {
  switch (command.do) {
    case 'send':
      return send(command)
    case 'begin':
      return begin(command.eachSecond)
    case 'end':
      return end()
    case 'count':
      return count()
  }
})
