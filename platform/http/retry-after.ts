const seconds = /^\d+(?:\.\d+)?$/
/** Date formats of RFC 9110, section 5.6.7. The first one accepts any time zone offset, as dates of e-mails have. */
const fixedDate = /^(?:[A-Za-z]{3}, )?\d{1,2} [A-Za-z]{3} \d{4} \d{2}:\d{2}(?::\d{2})? (?:GMT|UTC|Z|[+-]\d{4})$/
const rfc850Date = /^[A-Za-z]{6,9}, \d{2}-[A-Za-z]{3}-\d{2} \d{2}:\d{2}:\d{2} GMT$/
const asctimeDate = /^[A-Za-z]{3} [A-Za-z]{3} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/

/**
 * Parses `Retry-After` to milliseconds from now, rounded up, at most 2^53 - 1. A past date is 0. Of several headers,
 * returns the longest wait. Returns undefined if no header is valid.
 */
export function parseRetryAfter(header: string | string[] | undefined, nowMs: number): number | undefined {
  const waits = [header ?? []]
    .flat()
    .map((value) => waitOf(value.trim(), nowMs))
    .filter((wait) => wait !== undefined)
  return waits.length === 0 ? undefined : Math.max(...waits)
}

function waitOf(value: string, nowMs: number) {
  if (seconds.test(value)) return bounded(Number(value) * 1000)
  const isDate = fixedDate.test(value) || rfc850Date.test(value)
  const at = isDate ? Date.parse(value) : asctimeDate.test(value) ? Date.parse(`${value} GMT`) : Number.NaN
  return Number.isNaN(at) ? undefined : bounded(at - nowMs)
}

function bounded(ms: number) {
  return Math.min(Math.max(0, Math.ceil(ms)), Number.MAX_SAFE_INTEGER)
}
