import { handleCommands } from '../../commands.ts'
import { runAtRate, runConcurrently } from '../pacing.ts'
import type { ProducerCommand } from './producer.ts'

/** Runs in the process of a producer, and does what the bench tells it to do. */
export function serveProducer({
  create,
  fill,
  fillOne,
  settled,
}: {
  /** Creates one delivery. Returns its id. */
  create(index: number): Promise<string>
  fill(count: number): Promise<unknown>
  fillOne(count: number): Promise<unknown>
  settled(): Promise<void>
}): void {
  handleCommands(async (command: ProducerCommand) => {
    switch (command.do) {
      case 'fill':
        return fill(command.count)
      case 'fillOne':
        return fillOne(command.count)
      case 'enqueue':
        return runConcurrently(command.count, command.inFlight, create)
      case 'steady':
        return runAtRate(command.rate, command.seconds, create)
      case 'settled':
        return settled()
    }
  })
}
