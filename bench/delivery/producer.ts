import type { CommandProcess } from '../../test/support/processes.ts'
import type { Delivering } from './contender.ts'

export type ProducerCommand =
  | { do: 'fill'; count: number }
  | { do: 'enqueue'; count: number; inFlight: number }
  | { do: 'steady'; rate: number; seconds: number }
  | { do: 'settled' }

/** Controls the producer process of a contender. */
export function producing(producer: CommandProcess): Pick<Delivering, 'fill' | 'enqueue' | 'steady' | 'settled'> {
  const send = <Answer>(command: ProducerCommand) => producer.call<Answer>(command)
  return {
    fill: (count) => send({ do: 'fill', count }),
    enqueue: (count, inFlight) => send({ do: 'enqueue', count, inFlight }),
    steady: (rate, seconds) => send({ do: 'steady', rate, seconds }),
    settled: () => send({ do: 'settled' }),
  }
}
