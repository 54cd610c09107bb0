// A minimal bot: `npx node docs/examples/bot.ts` (docs/bots.md). It answers each message of a visitor once
// and hands over when the visitor asks for a person. A project of your own imports `@service/core-client`
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

async function answer({ conversationId, message }: Event) {
  const { messageId = '', body = '' } = message?.message ?? {}
  // Made from the id of the message, so that a repeat sends no second answer.
  const call = { conversationId, clientOperationId: `answer-${messageId}`, bot }
  const wantsPerson = body.toLowerCase().includes('person')
  const text = wantsPerson ? 'I am asking a person to help you.' : `You wrote: ${body}`
  await bots.sendBotMessage({
    ...call,
    body: text.slice(0, 4_000),
    quickReplies: wantsPerson ? [] : ['A person, please'],
  })
  if (wantsPerson) await bots.requestHuman({ ...call, summary: 'The visitor asked for a person.' })
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
