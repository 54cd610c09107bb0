import { isOriginAllowed } from '../../contract/origins.ts'
import { ServiceError } from '../errors.ts'

export type CommandKind = 'navigation' | 'screenshot'

/** The capability that each kind of command requires. */
export const capabilityOf = { navigation: 'navigation', screenshot: 'screenshots' } as const

export const navigationOutcomes = ['accepted', 'declined', 'completed', 'failed', 'unsupported'] as const
export type NavigationOutcome = (typeof navigationOutcomes)[number]

export const screenshotConsents = ['granted', 'denied', 'unsupported'] as const
export type ScreenshotConsent = (typeof screenshotConsents)[number]

export type CommandState = 'requested' | NavigationOutcome | ScreenshotConsent | 'uploaded' | 'expired' | 'cancelled'

export interface Transition {
  state: CommandState
  at: Date
  /** Who changed the state: `visitor`, `clock` for an expiry, or the name of the operator or service. */
  by: string
}

interface CommandProgress {
  kind: CommandKind
  /** The state in the database. `stateAt` returns `expired` if the time limit has passed. */
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

export const expiringStates: CommandState[] = ['requested', 'granted']

/** Returns the state at a time: `expired` after the time limit, even if the stored state is an earlier one. */
export function stateAt({ kind, state, expiresAt }: CommandProgress, now: number): CommandState {
  return nextStates[kind][state]?.includes('expired') && expiresAt.getTime() <= now ? 'expired' : state
}

export function isFinal(kind: CommandKind, state: CommandState): boolean {
  return nextStates[kind][state] === undefined
}

/**
 * Returns false if the command already has the state `to`. Errors: `CommandExpired`;
 * `CommandAlreadyResolved` if the current state does not allow the change.
 */
export function isStepDue(command: CommandProgress, to: CommandState, now: number): boolean {
  const state = stateAt(command, now)
  if (state === to) return false
  if (state === 'expired') throw new ServiceError('CommandExpired')
  if (!nextStates[command.kind][state]?.includes(to)) throw new ServiceError('CommandAlreadyResolved')
  return true
}

/** Returns the command with its state at this time (`stateAt`). */
export function progressAt<C extends CommandProgress>(command: C, now: number): C {
  const state = stateAt(command, now)
  if (state === command.state) return command
  return { ...command, state, transitions: [...command.transitions, { state, at: command.expiresAt, by: 'clock' }] }
}

/** Returns the violated rule. A valid URL is http(s) on one of the origins (contract, section 3). */
export function navigationIssue(url: string, origins: string[]): string | undefined {
  if (url.length > 2048) return 'maxLength'
  const target = URL.parse(url)
  // URL parsers drop or replace these characters, so the checked URL could differ from the one that
  // the page opens.
  if (!target || /[\s\p{Cc}\\]/u.test(url) || target.username !== '' || target.password !== '') return 'format'
  const isWeb = target.protocol === 'https:' || target.protocol === 'http:'
  return isWeb && isOriginAllowed(target.origin, origins) ? undefined : 'origin'
}

/** An uploaded screenshot; its bytes are in the screenshot store. */
export interface UploadedScreenshot {
  fileId: string
  contentType: string
  byteLength: number
  sha256: string
  uploadKey: string
}

/** A command to a visitor's page, with its requester, purpose and all transitions. */
export interface Command extends CommandProgress {
  /** The API calls this id `requestId` if the command is a screenshot request. */
  commandId: string
  workspaceId: string
  sessionId: string
  conversationId: string
  url?: string
  label?: string
  purpose?: string
  /** Name of the operator or service that requested the command. */
  requestedBy: string
  /** The operator's idempotency key, or a generated id. Unique in the session. */
  operationId: string
  inputHash: string
  requestedAt: Date
  deleteAt: Date
  screenshot?: UploadedScreenshot
  /** Files that are still being written or were abandoned. None of them is the screenshot. */
  uploads: Upload[]
}

export type CommandDocument = Omit<Command, 'commandId'> & { _id: string }

export const toCommand = ({ _id, ...rest }: CommandDocument): Command => ({ commandId: _id, ...rest })

export interface Upload {
  fileId: string
  startedAt: Date
  /** Set when the file will be deleted. It can then no longer become the screenshot. */
  abandoned?: true
}
