import type { Idempotency } from '../idempotency/idempotency.ts'
import { field, oneOf, validate } from '../rules.ts'
import type { Repeatable } from '../visitors/session-content.ts'
import type { VisitorAccess, VisitorCredentials } from '../visitors/visitor-access.ts'
import {
  type CommandKind,
  type CommandState,
  type NavigationOutcome,
  navigationOutcomes,
  type ScreenshotConsent,
  screenshotConsents,
} from './command-states.ts'
import { requireOwnCommand, takeStep } from './command-steps.ts'
import type { CommandStore } from './command-store.ts'
import { imageTypes } from './image-type.ts'

export interface Acknowledgement {
  commandId: string
  state: CommandState
}

export interface ScreenshotAcknowledgement extends Acknowledgement {
  /** The limits of an upload that is allowed now. */
  upload?: { maxBytes: number; contentTypes: readonly string[]; expiresAt: Date }
}

export interface CommandDecisionSettings {
  /** Seconds for the upload after consent is granted. */
  lifetime: number
  screenshotMaxBytes: number
  /** Seconds. */
  idempotencyRetention: number
}

export interface CommandDecisions {
  /**
   * Errors: those of VisitorAccess.authorize and Idempotency.once, `CommandNotFound`,
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

export interface CommandDecisionsDependencies {
  store: CommandStore
  access: VisitorAccess
  idempotency: Idempotency
  settings: CommandDecisionSettings
  now: () => number
}

/** Visitors' decisions about commands (contract, section 3). */
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
    const { session } = await access.authorize(credentials)
    validate(...issues)
    const { result, replayed } = await idempotency.once({
      scope: [`POST /commands/${kind}/acknowledgements`, session.sessionId],
      sessionId: session.sessionId,
      key: idempotencyKey,
      input: { commandId, answer },
      keptFor: settings.idempotencyRetention,
      run: async () => {
        await requireOwnCommand(store, kind, commandId, session.sessionId)
        const { state, expiresAt } = await takeStep(store, now, {
          commandId,
          to: answer,
          by: 'visitor',
          ...(answer === 'granted' ? { lifetime: settings.lifetime } : {}),
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
      return { content: { commandId: requestId, state, ...(state === 'granted' ? { upload } : {}) }, replayed }
    },
  }
}
