// A destination that answers after some milliseconds and keeps account of what it got.
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { clock, obey } from '../obey.ts'

export type ReceiverCommand =
  | { do: 'port' }
  /** Forgets all; `delayMs` is the answer's. */
  | { do: 'reset'; delayMs: number }
  /** Requests that come from now on wait for an answer that never comes. */
  | { do: 'hold' }
  /** How many wait. */
  | { do: 'held' }
  /** Lets the next ones through. */
  | { do: 'go' }
  /** Answers once so many different ones have been answered here, or the time is up. */
  | { do: 'wait'; count: number; withinMs: number }
  | { do: 'times' }

export interface Received {
  /** Different deliveries that were answered. */
  answered: number
  /** Requests beyond the first of each. */
  doubles: number
  /** When the last of them was answered. */
  lastAt: number
}

/** When it first came, and when it was answered first. */
export type Times = [id: string, firstAt: number][]

const seen = new Map<string, { firstAt: number; requests: number; answered: boolean }>()
let delayMs = 5
let holding = false
let held = 0
let answered = 0
let doubles = 0
let lastAt = 0
let waiting: { count: number; tell: () => void } | undefined

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
      if (waiting && answered >= waiting.count) waiting.tell()
    }, delayMs)
  })
  request.on('error', () => {})
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')

async function wait(count: number, withinMs: number): Promise<Received> {
  if (answered < count) {
    const enough = Promise.withResolvers<void>()
    waiting = { count, tell: enough.resolve }
    const timer = setTimeout(enough.resolve, withinMs)
    await enough.promise
    clearTimeout(timer)
    waiting = undefined
  }
  return { answered, doubles, lastAt }
}

obey(async (command: ReceiverCommand) => {
  switch (command.do) {
    case 'port':
      return (server.address() as AddressInfo).port
    case 'reset':
      delayMs = command.delayMs
      seen.clear()
      holding = false
      held = answered = doubles = lastAt = 0
      return true
    case 'hold':
      holding = true
      return true
    case 'held':
      return held
    case 'go':
      holding = false
      return true
    case 'wait':
      return wait(command.count, command.withinMs)
    case 'times':
      return [...seen].map(([id, { firstAt }]) => [id, firstAt])
  }
})
