import { createSlots } from '../../platform/concurrency/slots.ts'

/** Resolves when this turn of the event loop has room for one more piece of work. */
export type Turns = () => Promise<void>

/**
 * Limits how many pieces of work run in one turn of the event loop, first come, first served. Between
 * two turns, the process reads its sockets, so that hundreds of pieces do not delay sends.
 */
export function createTurns(perTurn: number): Turns {
  const slots = createSlots({ max: perTurn, waitingMax: Number.POSITIVE_INFINITY })
  return async () => {
    const { leave } = await slots.enter()
    setImmediate(leave)
  }
}
