/**
 * Loaded into a process before everything else: its clock goes by as many milliseconds as stand in the file that `CHAOS_CLOCK`
 * names. What the machine counts itself, as `performance.now` and timers do, is not moved: so it is when somebody sets a clock.
 */
import { readFileSync, watchFile } from 'node:fs'

const file = process.env.CHAOS_CLOCK ?? ''
const RealDate = Date
let moved = 0

function read() {
  moved = Number(readFileSync(file, 'utf8'))
}

if (file) {
  read()
  watchFile(file, { interval: 50, persistent: false }, read)
  const now = () => RealDate.now() + moved
  globalThis.Date = new Proxy(RealDate, {
    get: (target, name, receiver) => (name === 'now' ? now : Reflect.get(target, name, receiver)),
    apply: () => new RealDate(now()).toString(),
    construct: (target, given, newTarget) => Reflect.construct(target, given.length === 0 ? [now()] : given, newTarget),
  })
}
