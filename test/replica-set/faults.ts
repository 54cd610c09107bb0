import type { Document } from 'mongodb'
import type { ErrorName } from './errors.ts'

/** A fault of a command. Without an error, the member closes the connection. */
export interface CommandFault {
  /** `before`: the command is not executed. `after`: the fault replaces its answer. */
  when: 'before' | 'after'
  /** With `after`, the error is a write concern error of the executed write. */
  error?: ErrorName
}

export interface Faults {
  /** Causes a fault in the next `times` commands that match. */
  inNext(fault: CommandFault & { matches: (name: string, command: Document) => boolean; times?: number }): void
  /** Closes connections before or after a share of all writes. `chance` returns a number from 0 to 1. */
  inShare(share: number, chance?: () => number): void
  /** Time in milliseconds that each document of a multi-document write costs. */
  msPerDocument: number
  /** Number of faults that have happened. */
  happened: number
  next(name: string, command: Document): CommandFault | undefined
}

const shared = new Set(['insert', 'update', 'delete', 'findAndModify'])

export function createFaults(): Faults {
  let planned: (CommandFault & { matches: (name: string, command: Document) => boolean; left: number })[] = []
  let share = 0
  let chance = Math.random

  const faults: Faults = {
    msPerDocument: 0,
    happened: 0,
    inNext: ({ times = 1, ...fault }) => void planned.push({ ...fault, left: times }),
    inShare(of, by = Math.random) {
      share = of
      chance = by
    },
    next(name, command) {
      const found = planned.find(({ matches }) => matches(name, command))
      if (found) {
        found.left -= 1
        planned = planned.filter(({ left }) => left > 0)
      }
      const isDrawn = !found && share > 0 && shared.has(name) && chance() < share
      if (!found && !isDrawn) return undefined
      faults.happened += 1
      return found ?? { when: chance() < 0.5 ? 'before' : 'after' }
    },
  }
  return faults
}
