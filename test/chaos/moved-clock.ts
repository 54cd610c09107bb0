/**
 * Module that is preloaded into a process. It shifts `Date` by the milliseconds in the file named by `CHAOS_CLOCK`.
 * It does not shift `performance.now` and timers, because a change of the system clock does not affect them either.
 */
import { readFileSync, watchFile } from 'node:fs'

const file = process.env.CHAOS_CLOCK ?? ''
const RealDate = Date
let offsetMs = 0

function readOffset() {
  offsetMs = Number(readFileSync(file, 'utf8'))
}

if (file) {
  readOffset()
  watchFile(file, { interval: 50, persistent: false }, readOffset)
  const now = () => RealDate.now() + offsetMs
  globalThis.Date = new Proxy(RealDate, {
    get: (target, name, receiver) => (name === 'now' ? now : Reflect.get(target, name, receiver)),
    apply: () => new RealDate(now()).toString(),
    construct: (target, given, newTarget) => Reflect.construct(target, given.length === 0 ? [now()] : given, newTarget),
  })
}
