import type { FaultName } from './faults.ts'
import type { Random } from './random.ts'

export interface Step {
  /** Pause before this step, in milliseconds. */
  afterMs: number
  /** Faults that run at the same time. */
  faults: { name: FaultName; lastsMs: number; draw: number }[]
}

const maxFaultsAtOnce = 3
const pauseMs: [number, number] = [200, 1_500]
const lastsMs: [number, number] = [200, 2_500]

/**
 * Yields steps endlessly. The first steps cause each fault once, alone and in random order. Each
 * later step causes one to three random faults.
 */
export function* schedule(names: readonly FaultName[], random: Random): Generator<Step> {
  const step = (group: FaultName[]): Step => ({
    afterMs: random.between(...pauseMs),
    faults: group.map((name) => ({ name, lastsMs: random.between(...lastsMs), draw: random.between(0, 999) })),
  })
  for (const name of random.shuffled(names)) yield step([name])
  for (;;) {
    const group = random.shuffled(names).slice(0, random.between(1, maxFaultsAtOnce))
    // A restore undoes what other faults write, so it runs alone.
    yield step(group.includes('restore') ? ['restore'] : group)
  }
}
