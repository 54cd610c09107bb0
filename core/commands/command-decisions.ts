import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'
import type { Idempotency, Repeatable } from '../idempotency/idempotency.ts'
import { imageTypes } from '../pictures/image-model.ts'
import { field, oneOf, validate } from '../rules.ts'
import type { VisitorCredentials } from '../sessions/model.ts'
import type { VisitorAccess } from '../sessions/visitor-access.ts'
import { requireCapability } from '../workspaces/capabilities.ts'
import type { CommandStore } from './command-store.ts'
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

interface CommandDecisionSettings {
  /** Time in seconds within which the screenshot must be uploaded after the visitor consents. */
  lifetime: number
  screenshotMaxBytes: number
  /** Time in seconds during which a call with the same idempotency key returns the first result. */
  idempotencyRetention: number
}

export interface CommandDecisions {
  /**
   * Records a visitor's decision about a navigation request. Errors: those of
   * VisitorAccess.authorize and Idempotency.once, `RouteNotAdvertised`, `CommandNotFound`,
   * `CommandAlreadyResolved`, `CommandExpired`, `ValidationFailed`.
   */
  acknowledgeNavigation(request: {
    credentials: VisitorCredentials
    commandId: string
    outcome: string
    idempotencyKey: string
  }): Promise<Repeatable<Acknowledgement>>
  acknowledgeScreenshot(request: {
    credentials: VisitorCredentials
    requestId: string
    consent: string
    idempotencyKey: string
  }): Promise<Repeatable<ScreenshotAcknowledgement>>
}

interface CommandDecisionsDependencies {
  store: CommandStore
  access: VisitorAccess
  idempotency: Idempotency
  settings: CommandDecisionSettings
  now: () => number
}

/** Outcomes of a navigation that the page reports after the visitor's decision. */
const reportedOutcomes: readonly CommandState[] = ['completed', 'failed']

/** Handles visitors' decisions about commands (contract, section 3). */
export function createCommandDecisions(dependencies: CommandDecisionsDependencies): CommandDecisions {
  const { store, access, idempotency, settings, now } = dependencies

  async function acknowledge(
    kind: CommandKind,
    {
      credentials,
      commandId,
      answer,
      idempotencyKey,
    }: { credentials: VisitorCredentials; commandId: string; answer: CommandState; idempotencyKey: string },
    issues: Parameters<typeof validate>,
  ): Promise<Repeatable<{ state: CommandState; expiresAt: Date }>> {
    const { session, installation } = await access.authorize(credentials)
    validate(...issues)
    const { result, replayed } = await idempotency.once({
      scope: [`POST /commands/${kind}/acknowledgements`, session.sessionId],
      sessionId: session.sessionId,
      key: idempotencyKey,
      input: { commandId, answer },
      keptFor: settings.idempotencyRetention,
      run: async () => {
        // The outcome of an accepted navigation is recorded even without the capability, because
        // the navigation has already happened.
        if (!reportedOutcomes.includes(answer)) requireCapability(installation, capabilityOf[kind])
        await requireOwnCommand(store, kind, commandId, session.sessionId)
        const { state, expiresAt } = await takeStep(store, now, {
          commandId,
          to: answer,
          by: 'visitor',
          lifetime: answer === 'granted' ? settings.lifetime : undefined,
        })
        return { state, expiresAt }
      },
    })
    return { content: result, replayed }
  }

  return {
    async acknowledgeNavigation({ outcome, ...rest }) {
      const issue = field('/outcome', outcome, oneOf<string>(...navigationOutcomes))
      const answer = outcome as NavigationOutcome
      const { content, replayed } = await acknowledge('navigation', { ...rest, answer }, [issue])
      return { content: { commandId: rest.commandId, state: content.state }, replayed }
    },

    async acknowledgeScreenshot({ requestId, consent, ...rest }) {
      const issue = field('/consent', consent, oneOf<string>(...screenshotConsents))
      const answer = consent as ScreenshotConsent
      const { content, replayed } = await acknowledge('screenshot', { ...rest, commandId: requestId, answer }, [issue])
      const { state, expiresAt } = content
      const upload = { maxBytes: settings.screenshotMaxBytes, contentTypes: imageTypes, expiresAt }
      return { content: { commandId: requestId, state, upload: state === 'granted' ? upload : undefined }, replayed }
    },
  }
}

export interface Step {
  commandId: string
  to: CommandState
  /** Who changes the state: `visitor`, or the name of the operator or service. */
  by: string
  /** Time in seconds after which the state `to` expires. Absent if that state never expires. */
  lifetime?: number
}

/**
 * Changes the state of a command to `to` by compare-and-set. Changes nothing if the command already
 * has that state. If two calls are concurrent, the later one is checked against the state that the
 * earlier one stored. Errors: `CommandNotFound`, `CommandExpired`, `CommandAlreadyResolved`.
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

/** Returns the command if it belongs to the session. Errors: `CommandNotFound`. */
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
