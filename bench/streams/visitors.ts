// Opens the visitors' streams over plain sockets and counts their events.
import { readFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { clock, handleCommands } from '../commands.ts'
import { quantile } from '../table.ts'
import type { StreamVisitor } from './contenders.ts'

export type VisitorsCommand =
  | { do: 'load'; file: string; ports: number[] }
  /** Opens streams. Returns the milliseconds until each has received so many events. */
  | { do: 'open'; from: number; count: number; inFlight: number; events?: number }
  /** Breaks all connections with a TCP reset. */
  | { do: 'cut' }
  | { do: 'stall'; count: number }
  /** Whether ended streams reconnect, after a random part of their `retry`. */
  | { do: 'follow'; on: boolean }
  /** Waits for so many different events since the last `takeFigures`. */
  | { do: 'wait'; events: number; withinMs: number }
  /** Returns the figures since the last call. */
  | { do: 'takeFigures' }

/** Quantiles are times from the due time to the visitor, in milliseconds. */
export interface StreamFigures extends Record<'events' | 'doubles' | 'p50' | 'p99' | 'p999', number> {
  /** 99th percentile of the event loop delay of the load process. */
  lagP99: number
  /** Processor use of the load process, 0 to 1. Above 0.8, it is the bottleneck. */
  busy: number
  /** Number of reopened streams in each tenth of a second. */
  reopened: number[]
}

interface Stream {
  visitor: StreamVisitor
  socket: Socket | undefined
  lastEventId: string
  retryMs: number
  rest: string
  events: number
  begun: boolean
  port: number
  onProgress: () => void
}

const markers = /\[\[(\d+) (\d+\.\d+)\]\]/g
const loop = monitorEventLoopDelay({ resolution: 2 })
loop.enable()
let streams: Stream[] = []
let ports: number[] = []
let following = false
let seen = new Set<number>()
let doubles = 0
let waits: number[] = []
let refused = 0
let reopenedAt: number[] = []
let began = { at: clock(), cpu: process.cpuUsage() }
let onEvent = () => {}

function open(stream: Stream): void {
  const socket = connect({ port: ports[stream.port % ports.length] ?? 0, host: '127.0.0.1', noDelay: true })
  stream.socket = socket
  stream.rest = ''
  stream.begun = false
  socket.setEncoding('latin1')
  const { head } = stream.visitor
  socket.write(stream.lastEventId === '' ? `${head}\r\n` : `${head}Last-Event-ID: ${stream.lastEventId}\r\n\r\n`)
  socket.on('data', (text: string) => read(stream, text))
  socket.on('error', () => {})
  socket.on('close', () => {
    if (stream.socket !== socket) return
    stream.socket = undefined
    // Reconnects to the next server, because the current one may be stopping.
    stream.port += 1
    if (following) setTimeout(reopen, Math.random() * stream.retryMs, stream)
  })
}

function reopen(stream: Stream): void {
  if (!following || stream.socket !== undefined) return
  open(stream)
  stream.onProgress = () => {
    reopenedAt.push(clock())
    stream.onProgress = () => {}
  }
}

/** Servers never split a line between HTTP chunks. */
function read(stream: Stream, text: string): void {
  const end = text.lastIndexOf('\n')
  if (end < 0) {
    stream.rest += text
    return
  }
  const lines = stream.rest + text.slice(0, end)
  stream.rest = text.slice(end + 1)
  if (!stream.begun) {
    if (!lines.startsWith('HTTP/1.1 200')) {
      refused += 1
      stream.socket?.end()
      return
    }
    stream.begun = true
    stream.retryMs = Number(/^retry: ?(\d+)/m.exec(lines)?.[1] ?? 2000)
    stream.onProgress()
  }
  for (const [, id] of lines.matchAll(/^id: ?(.+?)\r?$/gm)) stream.lastEventId = id ?? ''
  const now = clock()
  for (const [, index, dueAt] of lines.matchAll(markers)) {
    if (seen.has(Number(index))) doubles += 1
    else seen.add(Number(index))
    waits.push(now - Number(dueAt))
    stream.events += 1
    stream.onProgress()
    onEvent()
  }
}

async function openRange(from: number, count: number, inFlight: number, events: number): Promise<number> {
  const wanted = streams.slice(from, from + count)
  const before = clock()
  let next = 0
  const lane = async () => {
    for (let stream = wanted[next++]; stream !== undefined; stream = wanted[next++]) {
      const each = stream
      await new Promise<void>((resolve) => {
        each.events = 0
        each.onProgress = () => {
          if (each.begun && each.events >= events) resolve()
        }
        open(each)
      })
      each.onProgress = () => {}
    }
  }
  const deadline = delay(60_000, undefined, { ref: false }).then(() => {
    const missing = wanted.filter((each) => !each.begun || each.events < events).length
    throw new Error(`${missing} of ${count} streams are not ready, ${refused} were rejected`)
  })
  await Promise.race([Promise.all(Array.from({ length: inFlight }, lane)), deadline])
  return clock() - before
}

async function wait(events: number, withinMs: number): Promise<void> {
  const enough = Promise.withResolvers<void>()
  const timer = setTimeout(enough.resolve, withinMs)
  onEvent = () => {
    if (seen.size >= events) enough.resolve()
  }
  onEvent()
  await enough.promise
  clearTimeout(timer)
  onEvent = () => {}
}

function takeFigures(): StreamFigures {
  const { user, system } = process.cpuUsage(began.cpu)
  const first = Math.min(...reopenedAt)
  const reopened: number[] = []
  for (const at of reopenedAt) {
    const tenth = Math.floor((at - first) / 100)
    reopened[tenth] = (reopened[tenth] ?? 0) + 1
  }
  const found = {
    events: seen.size,
    doubles,
    p50: quantile(waits, 0.5),
    p99: quantile(waits, 0.99),
    p999: quantile(waits, 0.999),
    lagP99: loop.percentile(99) / 1e6 - 2,
    busy: (user + system) / 1000 / (clock() - began.at),
    reopened: Array.from(reopened, (count = 0) => count),
  }
  seen = new Set()
  doubles = refused = 0
  waits = []
  reopenedAt = []
  began = { at: clock(), cpu: process.cpuUsage() }
  loop.reset()
  return found
}

handleCommands(async (command: VisitorsCommand) => {
  if (command.do === 'open') return openRange(command.from, command.count, command.inFlight, command.events ?? 0)
  if (command.do === 'wait') return wait(command.events, command.withinMs)
  if (command.do === 'takeFigures') return takeFigures()
  if (command.do === 'cut') for (const { socket } of streams) socket?.resetAndDestroy()
  if (command.do === 'stall') for (const { socket } of streams.slice(0, command.count)) socket?.pause()
  if (command.do === 'follow') following = command.on
  if (command.do !== 'load') return undefined
  const visitors: StreamVisitor[] = JSON.parse(await readFile(command.file, 'utf8'))
  ports = command.ports
  const state = { socket: undefined, lastEventId: '', retryMs: 2000, rest: '', events: 0, begun: false }
  streams = visitors.map((visitor, port) => ({ visitor, ...state, port, onProgress: () => {} }))
  return streams.length
})
