import type { FaultName } from './faults.ts'
import type { Random } from './random.ts'

export interface Step {
  /** Pause before it, in milliseconds. */
  afterMs: number
  /** At once. */
  faults: { name: FaultName; lastsMs: number; draw: number }[]
}

const most = 3
const pauseMs: [number, number] = [200, 1_500]
const lastsMs: [number, number] = [200, 2_500]

/** What goes wrong, without an end: first each fault alone, in an order of chance, then one to three of them together. */
export function* schedule(names: readonly FaultName[], random: Random): Generator<Step> {
  const step = (chosen: FaultName[]): Step => ({
    afterMs: random.between(...pauseMs),
    faults: chosen.map((name) => ({ name, lastsMs: random.between(...lastsMs), draw: random.between(0, 999) })),
  })
  for (const name of random.shuffled(names)) yield step([name])
  for (;;) yield step(random.shuffled(names).slice(0, random.between(1, most)))
}
