import { setTimeout as delay } from 'node:timers/promises'
import { clock } from '../commands.ts'
import { type Figures, measured } from '../measure.ts'
import { quantile } from '../table.ts'
import type { Delivering } from './contenders.ts'
import { concurrency, type ProducerCommand } from './pacing.ts'
import type { Received, ReceiverCommand, Times } from './receiver.ts'

const receiverDelayMs = 5
const drainWithinMs = 180_000
const redeliveredWithinMs = 150_000

const ask = <Answer>({ receiver }: Delivering, command: ReceiverCommand) => receiver.call<Answer>(command)
const produce = <Answer = void>({ work }: Delivering, command: ProducerCommand) => work<Answer>(command)

/** Stops the worker like a process that hangs. Resolves when it gets no more deliveries. */
export async function stopWorker({ worker, goneAfterMs }: Delivering): Promise<void> {
  if (worker() === undefined) throw new Error('its worker cannot be stopped alone')
  worker()!.kill('SIGSTOP')
  await delay(goneAfterMs)
}

/** Measures a backlog from its first request. The worker is stopped while the queue is filled. */
export async function drain(
  delivering: Delivering,
  count: number,
  fill: (count: number) => Promise<unknown> = () => produce(delivering, { do: 'fill', count }),
): Promise<Figures> {
  await ask(delivering, { do: 'reset', delayMs: receiverDelayMs })
  await stopWorker(delivering)
  await fill(count)
  return measured(delivering, async () => {
    delivering.worker()!.kill('SIGCONT')
    const received = await ask<Received>(delivering, { do: 'wait', count, withinMs: drainWithinMs })
    const arrivals = (await ask<Times>(delivering, { do: 'times' })).map(([, at]) => at)
    const seconds = (received.lastAt - Math.min(...arrivals)) / 1000
    return {
      done: count,
      rate: received.answered / seconds,
      missing: count - received.answered,
      doubles: received.doubles,
    }
  })
}

export const drainOne = (delivering: Delivering, count: number) =>
  drain(delivering, count, () => produce(delivering, { do: 'fillOne', count }))

/** Measures the time from the call to the receiver, at 100 deliveries a second. */
export async function steady(delivering: Delivering, seconds: number): Promise<Figures> {
  await ask(delivering, { do: 'reset', delayMs: receiverDelayMs })
  const figures = await measured(delivering, async () => {
    const put = await produce<[id: string, at: number][]>(delivering, { do: 'steady', rate: 100, seconds })
    const { answered, doubles } = await ask<Received>(delivering, { do: 'wait', count: put.length, withinMs: 30_000 })
    const received = new Map(await ask<Times>(delivering, { do: 'times' }))
    const waits = put.flatMap(([id, at]) => (received.has(id) ? [received.get(id)! - at] : []))
    const [p50, p95, p99] = [quantile(waits, 0.5), quantile(waits, 0.95), quantile(waits, 0.99)]
    return { done: put.length, p50, p95, p99, missing: put.length - answered, doubles }
  })
  return { ...figures, cpuPercent: (figures.cpuSeconds! / seconds) * 100 }
}

/** Kills a worker with all requests in flight, and starts another one. */
export async function crash(delivering: Delivering): Promise<Figures> {
  const count = 4 * concurrency
  const worker = delivering.worker()
  if (worker === undefined) throw new Error('its worker cannot be killed alone')
  await ask(delivering, { do: 'reset', delayMs: receiverDelayMs })
  await ask(delivering, { do: 'hold' })
  await produce(delivering, { do: 'fill', count })
  const full = clock() + 9_000
  let inFlight = 0
  for (; clock() < full && inFlight < concurrency; await delay(20)) inFlight = await ask(delivering, { do: 'held' })
  worker.kill('SIGKILL')
  const killedAt = clock()
  await worker.exited
  await ask(delivering, { do: 'go' })
  await delivering.startWorker()
  const waiting: ReceiverCommand = { do: 'wait', count, withinMs: redeliveredWithinMs }
  const { answered, doubles, lastAt } = await ask<Received>(delivering, waiting)
  return { inFlight, missing: count - answered, doubles, seconds: (lastAt - killedAt) / 1000 }
}
