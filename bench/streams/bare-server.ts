// Server process that does the least possible work for streams. It uses node:http and keeps the
// last events of each channel in memory. Its figures are the lower bound for a Node stream server.
// With a data folder as its argument, it shows an event only after a journaled insert of the event.
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { MongoClient } from 'mongodb'
import { attachEngine } from '../../dev/engine/engine.ts'
import { handleCommands } from '../commands.ts'

interface Channel {
  events: { sequence: number; bytes: Buffer }[]
  last: number
  readers: Set<ServerResponse>
}

const keptEvents = 400
const heartbeatSeconds = 15
const channels = new Map<string, Channel>()
const beats = Array.from({ length: heartbeatSeconds }, () => new Set<ServerResponse>())
let second = 0

const [dataDir] = process.argv.slice(2)
const log = dataDir === undefined ? undefined : await openLog(dataDir)

async function openLog(folder: string) {
  const engine = await attachEngine({
    dataDir: folder,
    logger: { info() {}, warn: console.warn, error: console.error },
  })
  const client = await new MongoClient(engine.uri).connect()
  return client.db('bare').collection('events', { writeConcern: { w: 1, journal: true } })
}

setInterval(() => {
  second += 1
  for (const response of beats[second % heartbeatSeconds] ?? []) response.write(': hb\n\n')
}, 1000)

function channelOf(name: string): Channel {
  let channel = channels.get(name)
  if (channel === undefined) {
    channel = { events: [], last: 0, readers: new Set() }
    channels.set(name, channel)
  }
  return channel
}

function publish(channel: Channel, json: string): void {
  channel.last += 1
  const bytes = Buffer.from(`id: ${channel.last}\nevent: message.received\ndata: ${json}\n\n`)
  channel.events.push({ sequence: channel.last, bytes })
  if (channel.events.length > keptEvents) channel.events.shift()
  for (const response of channel.readers) response.write(bytes)
}

const server = createServer((request, response) => {
  const [, kind, name = ''] = request.url?.split('/') ?? []
  const channel = channelOf(name)
  if (kind === 'pub') {
    let json = ''
    request.setEncoding('utf8')
    request.on('data', (text: string) => {
      json += text
    })
    request.on('end', async () => {
      const isWritten = await log?.insertOne({ channel: name, json }).catch(() => false)
      if (isWritten !== false) publish(channel, json)
      response.writeHead(isWritten === false ? 503 : 202, { 'content-length': 0 }).end()
    })
    return
  }
  const beat = beats[second % heartbeatSeconds]
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
  response.write('retry: 2000\n\n: open\n\n')
  const lastEventId = request.headers['last-event-id']
  if (lastEventId !== undefined) {
    for (const { sequence, bytes } of channel.events) if (sequence > Number(lastEventId)) response.write(bytes)
  }
  channel.readers.add(response)
  beat?.add(response)
  response.on('close', () => {
    channel.readers.delete(response)
    beat?.delete(response)
  })
})
server.listen(0, '127.0.0.1', 4096)
await once(server, 'listening')

handleCommands(async () => (server.address() as AddressInfo).port)
