import { setTimeout as delay } from 'node:timers/promises'
import { clock, handleCommands } from '../commands.ts'

/** Destinations that receive the deliveries. */
export const destinations = 50
/** Concurrent requests to the destinations, equal for all contenders. */
export const concurrency = 50
/** Size of a lead, which is also the size of the request body. */
export const payloadBytes = 2_048

/** Makes `count` calls, of which `inFlight` run concurrently. */
export async function runConcurrently(count: number, inFlight: number, call: (index: number) => Promise<unknown>) {
  let next = 0
  const lane = async () => {
    while (next < count) await call(next++)
  }
  await Promise.all(Array.from({ length: inFlight }, lane))
}

/** Starts calls at a fixed rate, without waiting for earlier calls. Returns the start time of each call. */
async function runAtRate(rate: number, seconds: number, call: (index: number) => Promise<string>) {
  const begin = clock() + 50
  const calls: Promise<[id: string, at: number]>[] = []
  for (let index = 0; index < rate * seconds; index += 1) {
    const early = begin + (index * 1000) / rate - clock()
    if (early > 0) await delay(early)
    const began = clock()
    calls.push(call(index).then((id) => [id, began]))
  }
  return Promise.all(calls)
}

/** What a producer does: create deliveries in bulk, one per call, or at a steady rate. */
export type ProducerCommand =
  /** As fast as possible, spread over the destinations. */
  | { do: 'fill'; count: number }
  /** All to one destination. */
  | { do: 'fillOne'; count: number }
  /** Returns each delivery's id and the start of its call. */
  | { do: 'steady'; rate: number; seconds: number }
  | { do: 'settled' }

interface Producer {
  /** Creates one delivery. Returns its id. */
  create(index: number): Promise<string>
  fill(count: number): Promise<unknown>
  fillOne(count: number): Promise<unknown>
  /** Whether the results of all attempts are stored. */
  isSettled(): Promise<boolean>
}

/** Runs in the process of a producer, and does what the bench tells it to do. */
export function serveProducer({ create, fill, fillOne, isSettled }: Producer): void {
  handleCommands(async (command: ProducerCommand) => {
    if (command.do === 'fill') return fill(command.count)
    if (command.do === 'fillOne') return fillOne(command.count)
    if (command.do === 'steady') return runAtRate(command.rate, command.seconds, create)
    while (!(await isSettled())) await delay(20)
  })
}
