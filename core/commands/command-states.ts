import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'

/** The states of a command to a page, and their transitions (contract, section 3). */

export type CommandKind = 'navigation' | 'screenshot'

export const navigationOutcomes = ['accepted', 'declined', 'completed', 'failed', 'unsupported'] as const
export type NavigationOutcome = (typeof navigationOutcomes)[number]

export const screenshotConsents = ['granted', 'denied', 'unsupported'] as const
export type ScreenshotConsent = (typeof screenshotConsents)[number]

export type CommandState = 'requested' | NavigationOutcome | ScreenshotConsent | 'uploaded' | 'expired' | 'cancelled'

export interface Transition {
  state: CommandState
  at: Date
  /** `visitor`, `clock`, or the subject of a service token. */
  by: string
}

export interface CommandProgress {
  kind: CommandKind
  /** The stored state; `stateAt` applies an expiry that is not stored yet. */
  state: CommandState
  expiresAt: Date
  transitions: Transition[]
}

const nextStates: Record<CommandKind, Partial<Record<CommandState, readonly CommandState[]>>> = {
  navigation: {
    requested: ['accepted', 'declined', 'unsupported', 'expired', 'cancelled'],
    accepted: ['completed', 'failed'],
  },
  screenshot: {
    requested: ['granted', 'denied', 'unsupported', 'expired', 'cancelled'],
    granted: ['uploaded', 'expired'],
  },
}

/** States that expire. */
export const expiringStates: CommandState[] = ['requested', 'granted']

/** The state at a time, including an expiry that is not stored yet. */
export function stateAt({ kind, state, expiresAt }: CommandProgress, now: number): CommandState {
  return nextStates[kind][state]?.includes('expired') && expiresAt.getTime() <= now ? 'expired' : state
}

/** Whether no state can follow. */
export function isFinal(kind: CommandKind, state: CommandState): boolean {
  return nextStates[kind][state] === undefined
}

/**
 * Whether a step must be taken; false if it was taken before. Errors: `CommandExpired`;
 * `CommandAlreadyResolved` if the state does not allow it.
 */
export function isStepDue(command: CommandProgress, to: CommandState, now: number): boolean {
  const state = stateAt(command, now)
  if (state === to) return false
  if (state === 'expired') throw new ServiceError(ErrorCode.COMMAND_EXPIRED)
  if (!nextStates[command.kind][state]?.includes(to)) throw new ServiceError(ErrorCode.COMMAND_ALREADY_RESOLVED)
  return true
}

/** The command at a time, including an expiry that is not stored yet. */
export function progressAt<C extends CommandProgress>(command: C, now: number): C {
  const state = stateAt(command, now)
  if (state === command.state) return command
  return { ...command, state, transitions: [...command.transitions, { state, at: command.expiresAt, by: 'clock' }] }
}
