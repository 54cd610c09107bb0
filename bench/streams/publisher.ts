// Publisher. Argument: the file with the access to the service, or the port of a server that takes its events
// at /pub/<channel>.
import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { createClient } from '@connectrpc/connect'
import { Pool } from 'undici'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { connectService } from '../../core-client/index.ts'
import { botOf, robo } from '../../test/support/bot.ts'
import { clock, handleCommands } from '../commands.ts'
import { runConcurrently } from '../delivery/pacing.ts'
import type { Figures } from '../measure.ts'
import { quantile } from '../table.ts'
import type { StreamVisitor } from './contenders.ts'

/** Events at random times (a Poisson process with this rate a second), each for a random visitor of the range. */
export interface Flow {
  from: number
  count: number
  rate: number
  leastBytes: number
  mostBytes: number
  /** Whether the text has three-byte characters. */
  wide?: boolean
  /** Whether events are parts that a bot adds to its answer. Other servers get messages. */
  grows?: boolean
}

export type PublishCommand =
  | { do: 'load'; file: string }
  | { do: 'flows'; flows: Flow[]; seconds: number }
  /** Sends `times` events to each visitor of the range, as fast as possible. */
  | { do: 'each'; from: number; count: number; times: number }

const [target = ''] = process.argv.slice(2)
const isService = !/^\d+$/.test(target)
const publish = isService ? await toService(target) : toServer(target)
let append: typeof publish | undefined = isService ? undefined : publish
const inFlight = 64
const plainText = 'The quick brown fox jumps over the lazy dog. '
const wideText = '敏捷的棕色狐狸跳过懒狗'
/** Prefix that makes operation ids unique per process. */
const run = Date.now().toString(36)
let visitors: StreamVisitor[] = []
let index = 0

async function toService(file: string) {
  const { coreUrl, serviceToken } = JSON.parse(await readFile(file, 'utf8'))
  const { transport } = await connectService({ urls: [coreUrl], token: serviceToken })
  const messaging = createClient(MessagingService, transport)
  return (conversationId: string, clientOperationId: string, body: string): Promise<unknown> =>
    messaging.sendAgentMessage({ conversationId, clientOperationId, body, agent: { displayName: 'Ada' } })
}

/** Adds each text to one answer of the conversation, in order. */
async function toAnswers(file: string) {
  const { coreUrl, workspaceId } = JSON.parse(await readFile(file, 'utf8'))
  const dataDir = dirname(file)
  const token = ['serve/run.ts', 'token', '--subject', 'bot', '--scopes', 'bots:act', '--workspace', workspaceId]
  const { stdout } = await promisify(execFile)(process.execPath, token, { env: { DATA_DIR: dataDir } })
  await writeFile(join(dataDir, 'bot.token'), stdout.trim(), { mode: 0o600 })
  const bots = await botOf({ dataDir, cores: [{ url: coreUrl }] })
  const lengths = new Map<string, Promise<number>>()
  return (conversationId: string, _: string, text: string): Promise<unknown> => {
    const call = { conversationId, clientOperationId: run, text, bot: robo }
    const length = (lengths.get(conversationId) ?? Promise.resolve(0)).then(
      async (offset) => (await bots.appendBotMessage({ ...call, offset })).length,
    )
    lengths.set(conversationId, length)
    return length
  }
}

function toServer(port: string) {
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: 32, pipelining: 1 })
  const headers = { 'content-type': 'application/json', 'x-eventsource-event': 'message.received' }
  return async (channel: string, operation: string, text: string): Promise<unknown> => {
    const occurredAt = new Date().toISOString()
    const message = {
      ...{ messageId: `msg_${operation}`, conversationId: channel, sequence: 1, body: text, contentType: 'text' },
      ...{ author: { kind: 'agent', displayName: 'Ada' }, state: 'sent', createdAt: occurredAt },
    }
    const body = JSON.stringify({ sequence: 1, type: 'message.received', occurredAt, data: { message } })
    const answer = await pool.request({ path: `/pub/${channel}`, method: 'POST', headers, body })
    await answer.body.dump()
    if (answer.statusCode >= 300) throw new Error(`answered ${answer.statusCode}`)
    return undefined
  }
}

/** The text begins with index and due time, from which receivers compute the delay. */
function send(visitor: number, bytes: number, dueAt: number, filler = plainText, through = publish): Promise<unknown> {
  index += 1
  const body = `[[${index} ${dueAt.toFixed(3)}]]`.padEnd(bytes, filler)
  return through(visitors[visitor]?.channel ?? '', `${run}-${index}`, body)
}

async function flow({ from, count, rate, leastBytes, mostBytes, wide = false, grows = false }: Flow, seconds: number) {
  if (grows) append ??= await toAnswers(target)
  const through = (grows && append) || publish
  const lags: number[] = []
  const calls: Promise<boolean>[] = []
  const end = clock() + seconds * 1000
  for (let dueAt = clock(); ; ) {
    dueAt += (-Math.log(1 - Math.random()) * 1000) / rate
    if (dueAt >= end) break
    const early = dueAt - clock()
    if (early > 0.5) await delay(early)
    lags.push(clock() - dueAt)
    const bytes = Math.floor(leastBytes + Math.random() * (mostBytes - leastBytes))
    const call = send(from + Math.floor(Math.random() * count), bytes, dueAt, wide ? wideText : plainText, through)
    calls.push(call.then(() => true).catch(() => false))
  }
  return { lags, done: await Promise.all(calls) }
}

handleCommands(async (command: PublishCommand): Promise<Figures> => {
  if (command.do === 'load') {
    visitors = JSON.parse(await readFile(command.file, 'utf8'))
    return {}
  }
  if (command.do === 'each') {
    const { from, count, times } = command
    await runConcurrently(count * times, inFlight, (each) => send(from + (each % count), 256, clock()))
    return { published: count * times, failed: 0 }
  }
  const flows = await Promise.all(command.flows.map((each) => flow(each, command.seconds)))
  const done = flows.flatMap((each) => each.done)
  const lags = flows.flatMap((each) => each.lags)
  return { published: done.length, failed: done.filter((isFine) => !isFine).length, lagP99: quantile(lags, 0.99) }
})
