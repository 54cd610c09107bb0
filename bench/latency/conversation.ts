// An agent writes to a core and a visitor reads a gateway's stream. One process does both, so that
// the times come from one clock.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import http, { type IncomingMessage } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { createClient } from '@connectrpc/connect'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { connectService } from '../../core-client/index.ts'
import { clock, handleCommands } from '../commands.ts'
import { createVisitors, eventsPath, pageHeaders } from '../visitors.ts'

export interface ConversationCommand {
  do: 'talk'
  count: number
  pauseMs: number
}

const [coreUrl = '', demoFile = '', gatewayPort = ''] = process.argv.slice(2)
const { serviceToken } = JSON.parse(await readFile(demoFile, 'utf8'))
const { transport } = await connectService({ urls: [coreUrl], token: serviceToken })
const messaging = createClient(MessagingService, transport)
const [visitor] = await createVisitors(Number(gatewayPort), 1)
if (!visitor) throw new Error('no visitor')
const { conversationId, accessGrant } = visitor

const headers = { ...pageHeaders, Accept: 'text/event-stream', Authorization: `Bearer ${accessGrant}` }
const request = http.get({ host: '127.0.0.1', port: gatewayPort, path: eventsPath, headers })
const [stream] = (await once(request, 'response')) as [IncomingMessage]
let wanted = ''
let arrived: (at: number) => void = () => {}
let unread = ''
stream.setEncoding('utf8').on('data', (text: string) => {
  unread += text
  if (wanted !== '' && unread.includes(wanted)) {
    unread = wanted = ''
    arrived(clock())
  }
})
stream.on('close', () => process.exit(1))

/**
 * Sends an agent's message. Returns the milliseconds from the call until the visitor receives the
 * message.
 */
async function say(): Promise<number> {
  const clientOperationId = randomUUID()
  wanted = `We do, and it will be there by Friday. ${clientOperationId}`
  const arrival = new Promise<number>((resolve) => {
    arrived = resolve
  })
  const at = clock()
  const agent = { displayName: 'Ada' }
  const answered = messaging.sendAgentMessage({ conversationId, clientOperationId, body: wanted, agent })
  const waited = (await arrival) - at
  await answered
  return waited
}

handleCommands(async ({ count, pauseMs }: ConversationCommand) => {
  const waits: number[] = []
  while (waits.length < count) {
    await delay(pauseMs)
    waits.push(await say())
  }
  return waits
})
