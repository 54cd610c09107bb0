import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { clock, handleCommands } from '../commands.ts'
import { runConcurrently } from '../delivery/pacing.ts'
import { quantile } from '../table.ts'
import type { Visitor } from './contender.ts'
import { marker } from './marker.ts'

/**
 * Events for `count` visitors, from the index `from` on. A Poisson process with the given rate
 * decides when the next event is due. Each event goes to a random visitor of this range.
 */
export interface Flow {
  from: number
  count: number
  /** Events per second. */
  rate: number
  leastBytes: number
  mostBytes: number
  /**
   * If true, the text uses three-byte characters, so that the body has three times as many bytes.
   */
  wide?: boolean
}

export type PublishCommand =
  | { do: 'load'; file: string }
  | { do: 'flows'; flows: Flow[]; seconds: number }
  /** Sends `times` events to each of `count` visitors from the index `from` on, as fast as possible. */
  | { do: 'each'; from: number; count: number; times: number }

export interface Published {
  published: number
  failed: number
  /** 99th percentile of the delay between the due time and the start of a call, in milliseconds. */
  lagP99: number
}

const inFlight = 64
const smallBytes = 256
const plainText = 'The quick brown fox jumps over the lazy dog. '
const wideText = '敏捷的棕色狐狸跳过懒狗'

/**
 * Executes `PublishCommand`s in a publisher process. `publish` sends one event to the contender.
 */
export function publishWith(publish: (channel: string, operation: string, body: string) => Promise<unknown>): void {
  let visitors: Visitor[] = []
  let index = 0
  /** Prefix that makes operation IDs unique per process. */
  const run = Date.now().toString(36)

  function send(visitor: number, bytes: number, dueAt: number, filler = plainText): Promise<unknown> {
    index += 1
    const body = marker(index, dueAt).padEnd(bytes, filler)
    return publish(visitors[visitor]?.channel ?? '', `${run}-${index}`, body)
  }

  async function flow({ from, count, rate, leastBytes, mostBytes, wide = false }: Flow, seconds: number) {
    const lags: number[] = []
    const calls: Promise<boolean>[] = []
    const end = clock() + seconds * 1000
    for (let dueAt = clock(); ; ) {
      dueAt += (-Math.log(1 - Math.random()) * 1000) / rate
      if (dueAt >= end) break
      const early = dueAt - clock()
      if (early > 0.5) await delay(early)
      lags.push(clock() - dueAt)
      const bytes = leastBytes + Math.random() * (mostBytes - leastBytes)
      const call = send(from + Math.floor(Math.random() * count), Math.floor(bytes), dueAt, wide ? wideText : plainText)
      calls.push(
        call.then(
          () => true,
          () => false,
        ),
      )
    }
    return { lags, done: await Promise.all(calls) }
  }

  async function execute(command: PublishCommand): Promise<Published> {
    if (command.do === 'load') {
      visitors = JSON.parse(await readFile(command.file, 'utf8'))
      return { published: 0, failed: 0, lagP99: 0 }
    }
    if (command.do === 'each') {
      const { from, count, times } = command
      const total = count * times
      await runConcurrently(total, inFlight, (each) => send(from + (each % count), smallBytes, clock()))
      return { published: total, failed: 0, lagP99: 0 }
    }
    const flows = await Promise.all(command.flows.map((each) => flow(each, command.seconds)))
    const done = flows.flatMap((each) => each.done)
    return {
      published: done.length,
      failed: done.filter((fine) => !fine).length,
      lagP99: quantile(
        flows.flatMap((each) => each.lags),
        0.99,
      ),
    }
  }

  handleCommands(execute)
}
