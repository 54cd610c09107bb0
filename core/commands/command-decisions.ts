import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { FieldIssue } from '../../contract/errors.ts'
import type { Core } from '../core.ts'
import { ServiceError } from '../errors.ts'
import type { Repeatable } from '../idempotency/idempotency.ts'
import { imageTypes } from '../pictures/image-model.ts'
import { field, oneOf, validate } from '../rules.ts'
import type { VisitorOperation } from '../sessions/model.ts'
import { oncePerSession, visitorAccessOf } from '../sessions/visitor-access.ts'
import { requireCapability } from '../workspaces/model.ts'
import { commandStoreOf } from './command-store.ts'
import {
  type Command,
  type CommandKind,
  type CommandState,
  capabilityOf,
  isStepDue,
  type NavigationOutcome,
  navigationOutcomes,
  type ScreenshotConsent,
  screenshotConsents,
} from './model.ts'

interface Acknowledgement {
  commandId: string
  state: CommandState
}

interface ScreenshotAcknowledgement extends Acknowledgement {
  /** Limits of the screenshot upload. Present only while an upload is allowed. */
  upload?: { maxBytes: number; contentTypes: readonly string[]; expiresAt: Date }
}

/** Outcomes that the page reports after the visitor has accepted. */
const reportedOutcomes: readonly CommandState[] = ['completed', 'failed']

/**
 * Records a visitor's decision. Errors: those of VisitorAccess.authorize and Idempotency.once,
 * `RouteNotAdvertised`, `CommandNotFound`, `CommandAlreadyResolved`, `CommandExpired`, `ValidationFailed`.
 */
export async function acknowledgeNavigation(
  core: Core,
  { commandId, outcome, ...operation }: VisitorOperation & { commandId: string; outcome: string },
): Promise<Repeatable<Acknowledgement>> {
  const issue = field('/outcome', outcome, oneOf<string>(...navigationOutcomes))
  const answer = outcome as NavigationOutcome
  const { content, replayed } = await acknowledge(core, 'navigation', { ...operation, commandId, answer }, issue)
  return { content: { commandId, state: content.state }, replayed }
}

/** Errors: those of `acknowledgeNavigation`. */
export async function acknowledgeScreenshot(
  core: Core,
  { requestId: commandId, consent, ...operation }: VisitorOperation & { requestId: string; consent: string },
): Promise<Repeatable<ScreenshotAcknowledgement>> {
  const issue = field('/consent', consent, oneOf<string>(...screenshotConsents))
  const answer = consent as ScreenshotConsent
  const { content, replayed } = await acknowledge(core, 'screenshot', { ...operation, commandId, answer }, issue)
  const { state, expiresAt } = content
  const upload = { maxBytes: core.config.SCREENSHOT_MAX_BYTES, contentTypes: imageTypes, expiresAt }
  return { content: { commandId, state, upload: state === 'granted' ? upload : undefined }, replayed }
}

async function acknowledge(
  core: Core,
  kind: CommandKind,
  { credentials, commandId, answer, idempotencyKey }: VisitorOperation & { commandId: string; answer: CommandState },
  issue: FieldIssue | undefined,
) {
  const { session, installation } = await visitorAccessOf(core).authorize(credentials)
  validate(issue)
  const route = `POST /commands/${kind}/acknowledgements`
  return oncePerSession(core, route, session, idempotencyKey, { commandId, answer }, async () => {
    // The outcome of an accepted navigation is recorded even without the capability, because
    // the navigation has already happened.
    if (!reportedOutcomes.includes(answer)) requireCapability(installation, capabilityOf[kind])
    await requireOwnCommand(core, kind, commandId, session.sessionId)
    const lifetime = answer === 'granted' ? core.config.COMMAND_LIFETIME_SECONDS : undefined
    const { state, expiresAt } = await takeStep(core, { commandId, to: answer, by: 'visitor', lifetime })
    return { state, expiresAt }
  })
}

interface Step {
  commandId: string
  to: CommandState
  /** Who changes the state: `visitor`, or the name of the operator or service. */
  by: string
  /** Time in seconds after which the state `to` expires. Absent if that state never expires. */
  lifetime?: number
}

/**
 * Changes the state of a command to `to` by compare-and-set, if it has another one. Errors:
 * `CommandNotFound`, `CommandExpired`, `CommandAlreadyResolved`.
 */
export async function takeStep(core: Core, { commandId, to, by, lifetime }: Step): Promise<Command> {
  const { now } = core
  const store = commandStoreOf(core)
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

/** Errors: `CommandNotFound`, also if the command belongs to another session. */
export async function requireOwnCommand(
  core: Core,
  kind: CommandKind,
  commandId: string,
  sessionId: string,
): Promise<Command> {
  const command = await commandStoreOf(core).find(commandId)
  if (command?.sessionId !== sessionId || command.kind !== kind) throw new ServiceError(ErrorCode.COMMAND_NOT_FOUND)
  return command
}
