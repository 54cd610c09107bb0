import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { quantile } from '../../bench/table.ts'
import { atFileEnd } from '../support/clean-up.ts'
import type { Stack } from '../support/stack.ts'
import { until } from '../support/until.ts'

/** One measured request of another visitor. */
export interface Sample {
  /** `slowness` is how long the machine took for a millisecond of work. */
  kind: 'send' | 'ready' | 'slowness'
  /** Time of the request, in milliseconds since 1970. */
  at: number
  ms: number
  status: number
}

/** Other visitors, who send 20 messages a second from another client address. */
export interface Bystanders {
  /** Waits for the answers of a number of sends from now on, or of more until `work` ends. Returns their samples. */
  measure(sends: number, work?: Promise<unknown>): Promise<Sample[]>
}

export async function startBystanders({ gateways, demo }: Stack): Promise<Bystanders> {
  const { origin, siteKey } = demo
  const worker = new Worker(join(import.meta.dirname, 'bystanders.worker.ts'), {
    workerData: { gatewayUrl: gateways[0]!.url, origin, siteKey },
  })
  atFileEnd(() => worker.terminate())
  const failed = new Promise<never>((_, reject) => worker.once('error', reject))
  const samples: Sample[] = []
  worker.on('message', (sample: Sample) => samples.push(sample))

  return {
    async measure(sends, work = Promise.resolve()) {
      const from = Date.now()
      await Promise.race([failed, work])
      const workEnded = Date.now()
      const lastOf = (times: number[]) => times.findIndex((at, index) => index >= sends - 1 && at >= workEnded)
      const measured = until('the sends', () => {
        const times = samples.filter(({ kind, at }) => kind === 'send' && at >= from).map(({ at }) => at)
        times.sort((a, b) => a - b)
        const last = lastOf(times)
        // Answers may arrive in a different order than their requests. So wait for the answers to later requests.
        return last >= 0 && times.length > last + 5 ? { to: times[last]! } : undefined
      })
      const { to } = await Promise.race([failed, measured])
      return samples.filter(({ at }) => at >= from && at <= to)
    },
  }
}

/** Returns a quantile of the times of one kind of request, in milliseconds. */
export function timeQuantile(samples: Sample[], kind: Sample['kind'], fraction: number): number {
  return quantile(
    samples.filter((sample) => sample.kind === kind).map(({ ms }) => ms),
    fraction,
  )
}
