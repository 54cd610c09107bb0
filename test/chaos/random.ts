/** Seeded random numbers: the same seed gives the same numbers. */
export interface Random {
  /** Returns a number from 0 (included) to 1 (excluded). */
  next(): number
  /** Returns a whole number from `least` to `most`, both included. */
  between(least: number, most: number): number
  pick<T>(values: readonly T[]): T
  shuffled<T>(values: readonly T[]): T[]
}

/** Creates a generator with the algorithm Mulberry32. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0

  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  const between = (least: number, most: number) => least + Math.floor(next() * (most - least + 1))

  return {
    next,
    between,
    pick: (values) => values[between(0, values.length - 1)]!,
    shuffled(values) {
      const order = values.map((value) => ({ value, place: next() }))
      return order.sort((a, b) => a.place - b.place).map(({ value }) => value)
    },
  }
}
