import { setTimeout as delay } from 'node:timers/promises'
import type { CommandProcess } from '../../test/support/processes.ts'
import { clock } from '../commands.ts'
import { quantile } from '../table.ts'
import { usageOf } from '../usage.ts'
import { concurrency, type Delivering } from './contenders/contender.ts'
import type { Received, ReceiverCommand, Times } from './receiver.ts'

/** Figures of one step, by name. */
export type Figures = Record<string, number>

const receiverDelayMs = 5
const drainWithinMs = 180_000
const redeliveredWithinMs = 150_000

const send = <Answer>(receiver: CommandProcess, command: ReceiverCommand) => receiver.call<Answer>(command)
const reset = (receiver: CommandProcess, delayMs = receiverDelayMs) => send(receiver, { do: 'reset', delayMs })

/** Stops the worker like a process that hangs. Resolves when it gets no more deliveries. */
export async function stopWorker({ worker, goneAfterMs = 0 }: Delivering): Promise<void> {
  worker().kill('SIGSTOP')
  await delay(goneAfterMs)
}

/**
 * Measures how fast a backlog is delivered, from the first request. The worker is stopped while the
 * queue is filled.
 */
export async function drain(
  delivering: Delivering,
  receiver: CommandProcess,
  count: number,
  fill: 'fill' | 'fillOne' = 'fill',
): Promise<Figures> {
  await reset(receiver)
  await stopWorker(delivering)
  await delivering[fill](count)
  const before = await usageOf(delivering.pids())
  delivering.worker().kill('SIGCONT')
  const { answered, doubles, lastAt } = await send<Received>(receiver, { do: 'wait', count, withinMs: drainWithinMs })
  await delivering.settled()
  const { cpuSeconds, residentMb } = await usageOf(delivering.pids())
  const arrivals = (await send<Times>(receiver, { do: 'times' })).map(([, at]) => at)
  const seconds = (lastAt - Math.min(...arrivals)) / 1000
  return {
    rate: answered / seconds,
    missing: count - answered,
    doubles,
    cpuMicros: ((cpuSeconds - before.cpuSeconds) / count) * 1e6,
    residentMb,
  }
}

export async function enqueue(delivering: Delivering, receiver: CommandProcess, count: number): Promise<Figures> {
  await reset(receiver)
  await stopWorker(delivering)
  const rate = await delivering.enqueue(count, concurrency)
  delivering.worker().kill('SIGCONT')
  await send<Received>(receiver, { do: 'wait', count, withinMs: drainWithinMs })
  await delivering.settled()
  return { rate }
}

/**
 * Enqueues deliveries at a steady rate. Measures the latency from the enqueue call to the receiver.
 */
export async function steady(delivering: Delivering, receiver: CommandProcess, seconds: number): Promise<Figures> {
  const rate = 100
  await reset(receiver)
  const before = await usageOf(delivering.pids())
  const put = await delivering.steady(rate, seconds)
  const { answered, doubles } = await send<Received>(receiver, { do: 'wait', count: put.length, withinMs: 30_000 })
  const { cpuSeconds } = await usageOf(delivering.pids())
  const received = new Map(await send<Times>(receiver, { do: 'times' }))
  const waits = put.flatMap(([id, at]) => (received.has(id) ? [(received.get(id) ?? 0) - at] : []))
  return {
    p50: quantile(waits, 0.5),
    p95: quantile(waits, 0.95),
    p99: quantile(waits, 0.99),
    missing: put.length - answered,
    doubles,
    cpuPercent: ((cpuSeconds - before.cpuSeconds) / seconds) * 100,
  }
}

/** Kills a worker with all requests in flight and starts another one immediately. */
export async function crash(delivering: Delivering, receiver: CommandProcess): Promise<Figures> {
  const count = 4 * concurrency
  await reset(receiver)
  await send(receiver, { do: 'hold' })
  await delivering.fill(count)
  const full = clock() + 9_000
  let inFlight = 0
  for (; clock() < full && inFlight < concurrency; await delay(20)) inFlight = await send(receiver, { do: 'held' })
  delivering.worker().kill('SIGKILL')
  const killedAt = clock()
  await delivering.worker().exited
  await send(receiver, { do: 'go' })
  await delivering.startWorker()
  const { answered, doubles, lastAt } = await send<Received>(receiver, {
    do: 'wait',
    count,
    withinMs: redeliveredWithinMs,
  })
  return { inFlight, missing: count - answered, doubles, seconds: (lastAt - killedAt) / 1000 }
}
