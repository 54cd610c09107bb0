import { setTimeout as delay } from 'node:timers/promises'
import { clock } from '../commands.ts'

/**
 * Starts calls at a fixed rate, without waiting for earlier calls. Returns the start time of each
 * call.
 */
export async function runAtRate(
  rate: number,
  seconds: number,
  call: (index: number) => Promise<string>,
): Promise<[id: string, at: number][]> {
  const begin = clock() + 50
  const calls: Promise<[string, number]>[] = []
  for (let index = 0; index < rate * seconds; index += 1) {
    const at = begin + (index * 1000) / rate
    const early = at - clock()
    if (early > 0) await delay(early)
    const began = clock()
    calls.push(call(index).then((id) => [id, began]))
  }
  return Promise.all(calls)
}

/** Makes `count` calls, of which `inFlight` run concurrently. Returns calls per second. */
export async function runConcurrently(count: number, inFlight: number, call: (index: number) => Promise<unknown>) {
  const began = performance.now()
  let next = 0
  const lane = async () => {
    while (next < count) await call(next++)
  }
  await Promise.all(Array.from({ length: inFlight }, lane))
  return count / ((performance.now() - began) / 1000)
}
