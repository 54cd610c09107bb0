import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'
import { type CommandKind, type CommandState, isStepDue } from './command-states.ts'
import type { Command, CommandStore } from './command-store.ts'

export interface Step {
  commandId: string
  to: CommandState
  /** `visitor`, or the subject of a service token. */
  by: string
  /** Seconds until the next state expires, if it has its own expiry. */
  lifetime?: number
}

/**
 * Takes a step, unless it was taken before, by compare-and-set. Of two concurrent steps, the second
 * is checked against the result of the first. Errors: `CommandNotFound`, `CommandExpired`,
 * `CommandAlreadyResolved`.
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

/** A command of the session. Errors: `CommandNotFound` otherwise. */
export async function requireOwnCommand(
  store: Pick<CommandStore, 'find'>,
  kind: CommandKind,
  commandId: string,
  sessionId: string,
): Promise<Command> {
  const command = await store.find(commandId)
  if (command?.sessionId !== sessionId || command.kind !== kind) throw new ServiceError(ErrorCode.COMMAND_NOT_FOUND)
  return command
}
