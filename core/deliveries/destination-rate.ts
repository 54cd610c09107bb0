/** Rate limit of a destination. */
interface Rate {
  maxPerSecond: number
  /**
   * Time up to which granted requests have reserved the limit, in milliseconds since 1970. Each
   * request reserves one interval. Absent before the first request.
   */
  freeAt: number | undefined
}

/**
 * Returns how many of the `wanted` requests may start at `now`, and the state of the rate limit
 * after them. Also returns the time at which the next request may start. A tenth of the requests of
 * one second may start at once. The interval between the other requests is at least
 * `1000 / maxPerSecond` milliseconds, so that no second has more than `maxPerSecond` requests.
 */
export function reserveRequests({ maxPerSecond, freeAt }: Rate, wanted: number, now: number) {
  const burst = Math.ceil(maxPerSecond / 10)
  const intervalMs = 1000 / (maxPerSecond - burst + 1)
  const from = Math.max(freeAt ?? 0, now)
  // The added 1e-6 compensates for rounding errors of the division.
  const free = Math.floor((now - from) / intervalMs + 1e-6) + burst
  const granted = Math.max(0, Math.min(wanted, free))
  const after = from + granted * intervalMs
  return { granted, freeAt: after, nextAt: Math.ceil(after - (burst - 1) * intervalMs) }
}
