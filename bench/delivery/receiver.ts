// Webhook destination that responds after a delay and counts its requests.
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { clock, handleCommands } from '../commands.ts'

export type ReceiverCommand =
  | { do: 'port' }
  | { do: 'reset'; delayMs: number }
  /** Keeps requests open and sends no response, until `go`. */
  | { do: 'hold' | 'go' }
  | { do: 'held' }
  /** Resolves when requests of `count` deliveries have arrived, or after `withinMs`. */
  | { do: 'wait'; count: number; withinMs: number }
  | { do: 'times' }

export interface Received {
  answered: number
  /** Number of requests whose delivery had already arrived. */
  doubles: number
  lastAt: number
}

export type Times = [id: string, firstAt: number][]

const seen = new Map<string, { firstAt: number; requests: number; answered: boolean }>()
let delayMs = 5
let holding = false
let held = 0
let answered = 0
let doubles = 0
let lastAt = 0
let waiting: { count: number; resolve: () => void } | undefined

const server = http.createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  request.resume()
  request.on('end', () => {
    const id = String(request.headers['webhook-id'])
    const known = seen.get(id) ?? { firstAt: clock(), requests: 0, answered: false }
    seen.set(id, known)
    known.requests += 1
    if (known.requests > 1) doubles += 1
    if (holding) {
      held += 1
      return
    }
    setTimeout(() => {
      response.writeHead(200, { 'content-length': 0 }).end()
      if (known.answered) return
      known.answered = true
      answered += 1
      lastAt = clock()
      if (waiting && answered >= waiting.count) waiting.resolve()
    }, delayMs)
  })
  request.on('error', () => {})
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')

async function wait(count: number, withinMs: number): Promise<Received> {
  if (answered < count) {
    const enough = Promise.withResolvers<void>()
    waiting = { count, resolve: enough.resolve }
    const timer = setTimeout(enough.resolve, withinMs)
    await enough.promise
    clearTimeout(timer)
    waiting = undefined
  }
  return { answered, doubles, lastAt }
}

handleCommands(async (command: ReceiverCommand) => {
  if (command.do === 'port') return (server.address() as AddressInfo).port
  if (command.do === 'wait') return wait(command.count, command.withinMs)
  if (command.do === 'times') return [...seen].map(([id, { firstAt }]) => [id, firstAt])
  if (command.do === 'held') return held
  holding = command.do === 'hold'
  if (command.do !== 'reset') return true
  delayMs = command.delayMs
  seen.clear()
  held = answered = doubles = lastAt = 0
  return true
})
