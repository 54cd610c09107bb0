import { setTimeout as delay } from 'node:timers/promises'
import { clock } from '../obey.ts'
import type { Obedient } from '../processes.ts'
import { quantile } from '../table.ts'
import { usageOf } from '../usage.ts'
import { concurrency, type Delivering } from './contender.ts'
import type { Received, ReceiverCommand, Times } from './receiver.ts'

/** What each step measures; `--only` picks by these names. */
export type Figures = Record<string, number>

const receiverDelayMs = 5
const drainWithinMs = 180_000
const redeliveredWithinMs = 150_000

const tell = <Answer>(receiver: Obedient, command: ReceiverCommand) => receiver.tell<Answer>(command)
const reset = (receiver: Obedient, delayMs = receiverDelayMs) => tell(receiver, { do: 'reset', delayMs })

/** A backlog that a worker finds: it is stopped while the queue is filled. */
export async function drain(delivering: Delivering, receiver: Obedient, count: number): Promise<Figures> {
  await reset(receiver)
  delivering.worker().kill('SIGSTOP')
  await delivering.fill(count)
  const before = await usageOf(delivering.pids())
  const began = clock()
  delivering.worker().kill('SIGCONT')
  const { answered, doubles, lastAt } = await tell<Received>(receiver, { do: 'wait', count, withinMs: drainWithinMs })
  await delivering.settled()
  const { cpuSeconds, residentMb } = await usageOf(delivering.pids())
  const seconds = (lastAt - began) / 1000
  return {
    rate: answered / seconds,
    missing: count - answered,
    doubles,
    cpuMicros: ((cpuSeconds - before.cpuSeconds) / count) * 1e6,
    residentMb,
  }
}

export async function enqueue(delivering: Delivering, receiver: Obedient, count: number): Promise<Figures> {
  await reset(receiver)
  delivering.worker().kill('SIGSTOP')
  const rate = await delivering.enqueue(count, concurrency)
  delivering.worker().kill('SIGCONT')
  await tell<Received>(receiver, { do: 'wait', count, withinMs: drainWithinMs })
  await delivering.settled()
  return { rate }
}

/** From the call that puts a delivery in to its arrival. */
export async function steady(delivering: Delivering, receiver: Obedient, seconds: number): Promise<Figures> {
  const rate = 100
  await reset(receiver)
  const before = await usageOf(delivering.pids())
  const put = await delivering.steady(rate, seconds)
  const { answered, doubles } = await tell<Received>(receiver, { do: 'wait', count: put.length, withinMs: 30_000 })
  const { cpuSeconds } = await usageOf(delivering.pids())
  const received = new Map(await tell<Times>(receiver, { do: 'times' }))
  const waits = put.flatMap(([id, at]) => (received.has(id) ? [(received.get(id) ?? 0) - at] : []))
  return {
    p50: quantile(waits, 0.5),
    p99: quantile(waits, 0.99),
    missing: put.length - answered,
    doubles,
    cpuPercent: ((cpuSeconds - before.cpuSeconds) / seconds) * 100,
  }
}

/** A worker is killed with as many requests in flight as it makes at once; another one starts at once. */
export async function crash(delivering: Delivering, receiver: Obedient): Promise<Figures> {
  const count = 4 * concurrency
  await reset(receiver)
  await tell(receiver, { do: 'hold' })
  await delivering.fill(count)
  const full = clock() + 9_000
  let inFlight = 0
  for (; clock() < full && inFlight < concurrency; await delay(20)) inFlight = await tell(receiver, { do: 'held' })
  delivering.worker().kill('SIGKILL')
  const killedAt = clock()
  await delivering.worker().exited
  await tell(receiver, { do: 'go' })
  await delivering.startWorker()
  const { answered, doubles, lastAt } = await tell<Received>(receiver, {
    do: 'wait',
    count,
    withinMs: redeliveredWithinMs,
  })
  return { inFlight, missing: count - answered, doubles, seconds: (lastAt - killedAt) / 1000 }
}
