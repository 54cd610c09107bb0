import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'
import { type CommandKind, type CommandState, isStepDue } from './command-states.ts'
import type { Command, CommandStore } from './command-store.ts'

export interface Step {
  commandId: string
  to: CommandState
  /** `visitor`, or the subject of a service token. */
  by: string
  /** Seconds that the state after it lasts, where it gets a time of its own. */
  lifetime?: number
}

/**
 * Takes one step, unless it was taken already, by compare-and-set: of two that come at once the second is judged by
 * what the first left. Errors: `CommandNotFound`, `CommandExpired`, `CommandAlreadyResolved`.
 */
export async function takeStep(
  store: Pick<CommandStore, 'find' | 'move'>,
  now: () => number,
  { commandId, to, by, lifetime }: Step,
): Promise<Command> {
  for (;;) {
    const command = await store.find(commandId)
    if (!command) throw new ServiceError(ErrorCode.COMMAND_NOT_FOUND)
    if (!isStepDue(command, to, now())) return command
    const at = new Date(now())
    const expiresAt = lifetime === undefined ? undefined : new Date(now() + lifetime * 1000)
    const moved = await store.move(commandId, command.state, { state: to, at, by }, expiresAt)
    if (moved) return moved
  }
}

/** A session's own command. Errors: `CommandNotFound`, whatever else it is. */
export async function ownCommand(
  store: Pick<CommandStore, 'find'>,
  kind: CommandKind,
  commandId: string,
  sessionId: string,
): Promise<Command> {
  const command = await store.find(commandId)
  if (command?.sessionId !== sessionId || command.kind !== kind) throw new ServiceError(ErrorCode.COMMAND_NOT_FOUND)
  return command
}
