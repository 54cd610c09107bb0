const SKIP_MIN_MS = 200
const SKIP_MAX_MS = 2_000

/** One of several cores, and how it did. */
export interface Candidate<Core> {
  readonly core: Core
  failures: number
  skipUntil: number
}

export interface Candidates<Core> {
  /** Those that may be asked now, each call beginning with another one. */
  inTurn(): Candidate<Core>[]
  answered(candidate: Candidate<Core>): void
  /** Out of reach: left aside for a short while, longer each time up to two seconds. */
  setAside(candidate: Candidate<Core>): void
  /** The core at this place of the list was seen alive, so that it is asked again at once. */
  revive(index: number): void
}

export function createCandidates<Core>(cores: Core[], now: () => number): Candidates<Core> {
  const candidates = cores.map((core): Candidate<Core> => ({ core, failures: 0, skipUntil: 0 }))
  let turn = 0

  return {
    inTurn() {
      const start = turn++ % candidates.length
      return [...candidates.slice(start), ...candidates.slice(0, start)].filter(({ skipUntil }) => skipUntil <= now())
    },
    answered(candidate) {
      candidate.failures = 0
    },
    setAside(candidate) {
      candidate.skipUntil = now() + Math.min(SKIP_MAX_MS, SKIP_MIN_MS * 2 ** candidate.failures)
      candidate.failures = Math.min(candidate.failures + 1, 10)
    },
    revive(index) {
      const candidate = candidates[index]
      if (candidate === undefined) return
      candidate.failures = 0
      candidate.skipUntil = 0
    },
  }
}
