import { createSlots } from '../../platform/concurrency/slots.ts'

/** Waits until one more piece of work may run in the current turn of the event loop. */
type Turns = () => Promise<void>

/**
 * Creates a limit on how many pieces of work run in one turn of the event loop, first come, first
 * served. The process reads its sockets between two turns, so it answers sends also while hundreds of
 * pieces wait.
 */
export function createTurns(perTurn: number): Turns {
  const slots = createSlots({ max: perTurn, waitingMax: Number.POSITIVE_INFINITY })
  return async () => {
    const { leave } = await slots.enter()
    setImmediate(leave)
  }
}
