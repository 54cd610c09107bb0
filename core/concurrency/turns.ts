import { createSlots } from '../../platform/concurrency/slots.ts'

/**
 * Returns a function that waits until one more piece of work may run in the current turn of the event
 * loop, first come, first served. The process reads its sockets between two turns, so it answers sends
 * also while hundreds of pieces wait.
 */
export function createTurns(perTurn: number) {
  const slots = createSlots({ max: perTurn })
  return async () => {
    const { leave } = await slots.enter()
    setImmediate(leave)
  }
}
