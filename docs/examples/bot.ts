// A minimal bot: `npx node docs/examples/bot.ts` (docs/bots.md). It answers each message of a visitor once
// while it writes the answer, and hands over when the visitor asks for a person. A project of your own imports `@service/core-client`
// and `@service/core-client/proto/…` instead.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { ConnectError, createClient } from '@connectrpc/connect'
import { BotService } from '#proto/bot/v1/bot_pb.js'
import { type Event, EventsService } from '#proto/events/v1/events_pb.js'
import { connectService, createTlsFiles, errorInfoOf } from '../../core-client/index.ts'

const { CORE_URLS = 'http://localhost:8090', SERVICE_TOKEN = '', CURSOR_FILE = 'bot.cursor', CORE_CA } = process.env
const tls = CORE_CA === undefined ? undefined : createTlsFiles({ ca: CORE_CA })
const { transport } = await connectService({ urls: CORE_URLS.split(','), token: SERVICE_TOKEN, tls })
const [bots, events] = [createClient(BotService, transport), createClient(EventsService, transport)]
const bot = { displayName: 'Robo' }
type Call = { conversationId: string; clientOperationId: string; bot: typeof bot }

async function answer({ conversationId, message }: Event) {
  const { messageId = '', body = '' } = message?.message ?? {}
  // Made from the id of the message, so that a repeat sends no second answer.
  const call = { conversationId, clientOperationId: `answer-${messageId}`, bot }
  if (!body.toLowerCase().includes('person')) return stream(call, written(`You wrote: ${body}`), ['A person, please'])
  await bots.sendBotMessage({ ...call, body: 'I am asking a colleague to help you.' })
  await bots.requestHuman({ ...call, summary: 'The visitor asked for a person.' })
}

/** Stands for the client of a model: yields a text in parts, as it is written. */
async function* written(text: string) {
  const answer = [...text].slice(0, 4_000).join('')
  for (const part of answer.split(/(?<=\s)(?=\S)/)) {
    await delay(30)
    yield part
  }
}

/**
 * Sends a text while it is written. Ends early if the visitor or an operator stops it. The first call
 * returns what was accepted before a kill, and the same text goes on from there. A bot that writes
 * another text the second time completes the message instead.
 */
async function stream(call: Call, parts: AsyncIterable<string>, quickReplies: string[]) {
  let { length: offset, state } = await bots.appendBotMessage({ ...call, offset: 0, text: '' })
  let known = offset
  for await (const part of parts) {
    if (state !== 'growing') return
    const text = [...part].slice(known).join('')
    known = Math.max(0, known - [...part].length)
    if (text) ({ length: offset, state } = await bots.appendBotMessage({ ...call, offset, text }))
  }
  await bots.appendBotMessage({ ...call, offset, done: true, quickReplies })
}

/** Repeats a call until it succeeds or fails for good: BotStopped, or NotFound after an erasure. */
async function untilDone<Result>(call: () => Promise<Result>): Promise<Result | undefined> {
  for (;;) {
    const failure = await call().then((value) => ({ value }), ConnectError.from)
    if ('value' in failure) return failure.value
    if (errorInfoOf(failure)?.retryable === false) return undefined
    await delay(500)
  }
}

function save() {
  writeFileSync(`${CURSOR_FILE}.new`, cursor)
  renameSync(`${CURSOR_FILE}.new`, CURSOR_FILE)
}

let cursor = existsSync(CURSOR_FILE) ? readFileSync(CURSOR_FILE, 'utf8') : ''
// A new bot begins at the end of the feed: it does not answer old messages.
for (let before: string | undefined; !existsSync(CURSOR_FILE) && before !== cursor; ) {
  before = cursor
  cursor = (await untilDone(() => events.listEvents({ cursor, limit: 100 })))?.cursor ?? cursor
}
for (;;) {
  save()
  try {
    for await (const page of events.followEvents({ cursor, types: ['message.visitor'] })) {
      for (const event of page.events) await untilDone(() => answer(event))
      cursor = page.cursor
      save()
    }
  } catch (error) {
    console.error(`the stream ended (${ConnectError.from(error).message}); will open it again`)
    await delay(500)
  }
}
