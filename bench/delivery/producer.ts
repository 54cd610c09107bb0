import type { CommandProcess } from '../processes.ts'
import type { Delivering } from './contender.ts'

export type ProducerCommand =
  | { do: 'fill'; count: number }
  | { do: 'enqueue'; count: number; inFlight: number }
  | { do: 'steady'; rate: number; seconds: number }
  | { do: 'settled' }

/** Controls the producer process of a contender. */
export function producing(producer: CommandProcess): Pick<Delivering, 'fill' | 'enqueue' | 'steady' | 'settled'> {
  const tell = <Answer>(command: ProducerCommand) => producer.call<Answer>(command)
  return {
    fill: (count) => tell({ do: 'fill', count }),
    enqueue: (count, inFlight) => tell({ do: 'enqueue', count, inFlight }),
    steady: (rate, seconds) => tell({ do: 'steady', rate, seconds }),
    settled: () => tell({ do: 'settled' }),
  }
}
