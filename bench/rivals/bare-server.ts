// Does the least for a message: Fastify checks the body and stores it before it answers. Beside it, node:http
// offers streams with the last events in memory, `/sub/<channel>` and `/pub/<channel>`. Arguments: the kind of
// store, and its folder, URI or port.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text as textOf } from 'node:stream/consumers'
import fastify from 'fastify'
import { handleCommands } from '../commands.ts'
import { type BareMessage, messageStores } from './message-stores.ts'

interface Channel {
  events: { sequence: number; bytes: Buffer }[]
  last: number
  readers: Set<ServerResponse>
}

const keptEvents = 400
const heartbeatSeconds = 15
const [kind = '', place = ''] = process.argv.slice(2)
const channels = new Map<string, Channel>()
const beats = Array.from({ length: heartbeatSeconds }, () => new Set<ServerResponse>())
let second = 0
setInterval(() => {
  second += 1
  for (const response of beats[second % heartbeatSeconds] ?? []) response.write(': hb\n\n')
}, 1000)

function channelOf(name: string): Channel {
  const channel = channels.get(name) ?? { events: [], last: 0, readers: new Set() }
  channels.set(name, channel)
  return channel
}

async function publish(channel: Channel, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await textOf(request)
  const isStored = await store.put({ clientOperationId: '', body, contentType: 'text' }).then(
    () => true,
    () => false,
  )
  response.writeHead(isStored ? 202 : 503, { 'content-length': 0 }).end()
  if (!isStored) return
  channel.last += 1
  const bytes = Buffer.from(`id: ${channel.last}\nevent: message.received\ndata: ${body}\n\n`)
  channel.events.push({ sequence: channel.last, bytes })
  if (channel.events.length > keptEvents) channel.events.shift()
  for (const reader of channel.readers) reader.write(bytes)
}

function subscribe(channel: Channel, request: IncomingMessage, response: ServerResponse): void {
  const beat = beats[second % heartbeatSeconds]
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
  response.write('retry: 2000\n\n: open\n\n')
  const lastEventId = Number(request.headers['last-event-id'] ?? Number.POSITIVE_INFINITY)
  for (const { sequence, bytes } of channel.events) if (sequence > lastEventId) response.write(bytes)
  channel.readers.add(response)
  beat?.add(response)
  response.on('close', () => {
    channel.readers.delete(response)
    beat?.delete(response)
  })
}

const app = fastify({
  serverFactory: (handle) =>
    createServer((request, response) => {
      const [, path = '', name = ''] = request.url?.split('/') ?? []
      if (path === 'pub') void publish(channelOf(name), request, response).catch(() => response.destroy())
      else if (path === 'sub') subscribe(channelOf(name), request, response)
      else handle(request, response)
    }),
})
const store = await messageStores[kind as keyof typeof messageStores](place)
const text = { type: 'string', minLength: 1, maxLength: 4000 }
const properties = { clientOperationId: text, body: text, contentType: text }
const body = { type: 'object', properties, required: Object.keys(properties), additionalProperties: false }
app.post<{ Body: BareMessage }>('/messages', { schema: { body } }, async (request, reply) => {
  const acceptedAt = new Date()
  const messageId = await store.put(request.body)
  const { clientOperationId } = request.body
  return reply.code(202).send({ clientOperationId, messageId, state: 'queued', acceptedAt })
})
await app.listen({ port: 0, host: '127.0.0.1', backlog: 4096 })

handleCommands(async (command: { do: 'port' | 'count' }) =>
  command.do === 'port' ? (app.server.address() as AddressInfo).port : store.count(),
)
