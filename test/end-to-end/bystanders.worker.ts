// A worker thread in which other visitors send while the main thread makes load. So the load does not delay
// their measures.
import { setTimeout as delay } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { Agent, fetch as fetchWith } from 'undici'
import { startVisitor, type Visitor } from '../support/visitor.ts'
import type { Sample } from './bystanders.ts'

/** Visitors take turns, so that none reaches its rate limit. */
const VISITORS = 40
const EVERY_MS = 50
const SPIN_MS = 4

/** Requests from another client address, whose connections are counted apart. */
const dispatcher = new Agent({ localAddress: '127.0.0.2' })
const fetch = ((url: string, init: object) =>
  fetchWith(url, { ...init, dispatcher } as never)) as unknown as typeof globalThis.fetch

const { gatewayUrl, origin, siteKey } = workerData as { gatewayUrl: string; origin: string; siteKey: string }
const visitors: Visitor[] = []
for (let index = 0; index < VISITORS; index++) visitors.push(await startVisitor({ gatewayUrl, origin, siteKey, fetch }))

async function measure(kind: Sample['kind'], call: () => Promise<{ status: number }>) {
  const [at, started] = [Date.now(), performance.now()]
  const { status } = await call().catch(() => ({ status: 0 }))
  parentPort!.postMessage({ kind, at, ms: performance.now() - started, status } satisfies Sample)
}

/** Returns how long the machine takes for a millisecond of work. More than 1 if it is busy. */
function slownessOfMachine(): number {
  const [started, before] = [performance.now(), process.threadCpuUsage()]
  let used = 0
  while (used < SPIN_MS) used = process.threadCpuUsage(before).user / 1_000
  return (performance.now() - started) / used
}

// Does not wait for the answers, so that a delay of the service is measured by each send that it delays.
for (let turn = 0; ; turn++) {
  void measure('send', () => visitors[turn % VISITORS]!.send('Still here?'))
  if (turn % 4 === 0) void measure('ready', () => fetch(`${gatewayUrl}/readyz`))
  if (turn % 10 === 0)
    parentPort!.postMessage({ kind: 'slowness', at: Date.now(), ms: slownessOfMachine(), status: 200 } satisfies Sample)
  await delay(EVERY_MS)
}
