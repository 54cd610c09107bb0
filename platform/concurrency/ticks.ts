/**
 * Timers that need no precise time end together, at multiples of this time. Each wake-up of a resting process
 * costs more than the work that it does.
 */
const tickMs = 250

interface Tick {
  runs: Set<() => void>
  timer: NodeJS.Timeout
}

const ticks = new Map<number, Tick>()

/** Runs a function at the tick that is nearest to this time in milliseconds. Returns a function that cancels it. */
export function atTick(ms: number, run: () => void): () => void {
  const now = performance.now()
  const number = Math.max(Math.floor(now / tickMs) + 1, Math.round((now + ms) / tickMs))
  const tick = ticks.get(number) ?? { runs: new Set(), timer: setTimeout(begin, number * tickMs - now, number).unref() }
  ticks.set(number, tick)
  tick.runs.add(run)
  return () => {
    tick.runs.delete(run)
    if (tick.runs.size > 0 || ticks.get(number) !== tick) return
    clearTimeout(tick.timer)
    ticks.delete(number)
  }
}

function begin(number: number) {
  const { runs } = ticks.get(number)!
  ticks.delete(number)
  for (const run of runs) run()
}

/** Runs a function at ticks, about each `ms` milliseconds, until the returned function is called. */
export function everyTicks(ms: number, run: () => void): () => void {
  let cancel = atTick(ms, again)
  function again() {
    cancel = atTick(ms, again)
    run()
  }
  return () => cancel()
}
