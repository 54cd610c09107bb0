import type { CommandProcess } from '../../../test/support/processes.ts'
import type { Delivering } from './contender.ts'

export type ProducerCommand =
  | { do: 'fill'; count: number }
  | { do: 'fillOne'; count: number }
  | { do: 'enqueue'; count: number; inFlight: number }
  | { do: 'steady'; rate: number; seconds: number }
  | { do: 'settled' }

/** Controls the producer process of a contender. */
export function producing(
  producer: CommandProcess,
): Pick<Delivering, 'fill' | 'fillOne' | 'enqueue' | 'steady' | 'settled'> {
  const send = <Answer>(command: ProducerCommand) => producer.call<Answer>(command)
  return {
    fill: (count) => send({ do: 'fill', count }),
    fillOne: (count) => send({ do: 'fillOne', count }),
    enqueue: (count, inFlight) => send({ do: 'enqueue', count, inFlight }),
    steady: (rate, seconds) => send({ do: 'steady', rate, seconds }),
    settled: () => send({ do: 'settled' }),
  }
}
