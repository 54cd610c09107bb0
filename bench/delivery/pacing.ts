import { setTimeout as delay } from 'node:timers/promises'
import { clock, handleCommands } from '../commands.ts'

export const destinations = 50
/** Concurrent requests to the destinations, equal for all contenders. */
export const concurrency = 50
/** Size of a lead, which is also that of the request body. */
export const payloadBytes = 2_048

export async function runConcurrently(count: number, inFlight: number, call: (index: number) => Promise<unknown>) {
  let next = 0
  const lane = async () => {
    while (next < count) await call(next++)
  }
  await Promise.all(Array.from({ length: inFlight }, lane))
}

/** Starts calls at a fixed rate, without waiting for earlier ones. Returns the start time of each. */
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

export type ProducerCommand =
  | { do: 'fill'; count: number }
  | { do: 'fillOne'; count: number }
  /** Returns each delivery's id and the start of its call. */
  | { do: 'steady'; rate: number; seconds: number }
  | { do: 'settled' }

interface Producer {
  /** Returns the id of the delivery. */
  create(index: number): Promise<string>
  fill(count: number): Promise<unknown>
  fillOne(count: number): Promise<unknown>
  /** Whether the results of all attempts are stored. */
  isSettled(): Promise<boolean>
}

export function serveProducer({ create, fill, fillOne, isSettled }: Producer): void {
  handleCommands(async (command: ProducerCommand) => {
    if (command.do === 'fill') return fill(command.count)
    if (command.do === 'fillOne') return fillOne(command.count)
    if (command.do === 'steady') return runAtRate(command.rate, command.seconds, create)
    while (!(await isSettled())) await delay(20)
  })
}
