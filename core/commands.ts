import { ErrorCode } from '#proto/error/v1/error_pb.js'
import {
  type CommandKind,
  type CommandState,
  isStepDue,
  type NavigationOutcome,
  navigationOutcomes,
  progressAt,
  type ScreenshotConsent,
  screenshotConsents,
  stateAt,
} from './command-states.ts'
import type { Directory } from './directory.ts'
import { ServiceError } from './errors.ts'
import type { EventLog } from './event-log.ts'
import { hashInput, type Idempotency } from './idempotency.ts'
import { newId } from './ids.ts'
import { imageTypes } from './image-type.ts'
import type { CommandEventType } from './log-events.ts'
import { isOriginAllowed } from './origins.ts'
import { field, integer, line, oneOf, operationId, validate } from './rules.ts'
import type { Repeatable, Sessions } from './sessions.ts'
import type { Command, CommandStore } from './store/commands.ts'
import type { Session } from './store/sessions.ts'
import type { Installation } from './store/workspaces.ts'
import { sessionEndCodes, type VisitorAccess, type VisitorCredentials } from './visitor-access.ts'

/** An operator's tool: the subject of its token, and the one workspace that it may act for. */
export interface Operator {
  subject: string
  workspaceId?: string
}

export interface NavigationRequest {
  sessionId: string
  url: string
  label?: string
  /** Left out: each call is an operation of its own. */
  clientOperationId?: string
}

export interface ScreenshotRequest {
  sessionId: string
  purpose?: string
  clientOperationId?: string
}

export interface Acknowledgement {
  commandId: string
  state: CommandState
}

export interface ScreenshotAcknowledgement extends Acknowledgement {
  /** What may be uploaded now. */
  upload?: { maxBytes: number; contentTypes: readonly string[]; expiresAt: Date }
}

export interface CommandSettings {
  /** Seconds for the decision, and after a granted consent for the upload. */
  lifetime: number
  /** Days until a command is deleted. */
  retention: number
  screenshotMaxBytes: number
  /** Seconds. */
  idempotencyRetention: number
}

export interface Commands {
  /**
   * Asks the visitor of a live session. Errors: `NotFound`, those of a session that is over, `RouteNotAdvertised`,
   * `ValidationFailed`, `IdempotencyConflict`, `ServiceUnavailable` (whether it is asked is then found out by a repeat).
   */
  requestNavigation(request: NavigationRequest, operator: Operator): Promise<Repeatable<Command>>
  requestScreenshot(request: ScreenshotRequest, operator: Operator): Promise<Repeatable<Command>>
  /** Errors: `CommandNotFound`, `CommandAlreadyResolved`, `CommandExpired`. */
  cancel(commandId: string, operator: Operator): Promise<Command>
  /** Errors: `CommandNotFound`, also for another workspace's command. */
  find(commandId: string, workspaceId?: string): Promise<Command>
  /** Errors: `NotFound`, `ValidationFailed`. */
  list(sessionId: string, limit: number | undefined, workspaceId?: string): Promise<Command[]>
  /**
   * Errors: those of VisitorAccess.authorize and Idempotency.once, `CommandNotFound`, `CommandAlreadyResolved`,
   * `CommandExpired`, `ValidationFailed`.
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

export interface CommandsDependencies {
  store: CommandStore
  sessions: Pick<Sessions, 'find'>
  access: VisitorAccess
  installations: Pick<Directory['installations'], 'get'>
  log: Pick<EventLog, 'append'>
  idempotency: Idempotency
  settings: CommandSettings
  now: () => number
}

const listMax = 100
const listDefault = 50
const capabilityOf = { navigation: 'navigation', screenshot: 'screenshots' } as const
const dayMs = 86_400_000

/** Commands to a visitor's page, none of which happens without the visitor's consent (contract, section 3). */
export function createCommands(dependencies: CommandsDependencies): Commands {
  const { store, sessions, access, installations, log, idempotency, settings, now } = dependencies

  /**
   * The command is written before its event, and neither is acknowledged without the other: where a crash comes between
   * them, the operator's repeat finds the command and writes the event, and without a repeat it expires unseen.
   */
  async function request(
    kind: CommandKind,
    { sessionId, clientOperationId, ...input }: NavigationRequest | ScreenshotRequest,
    { subject, workspaceId }: Operator,
  ): Promise<Repeatable<Command>> {
    validate(field('/clientOperationId', clientOperationId, operationId))
    const session = await sessions.find(sessionId, workspaceId)
    const commandId = newId(kind === 'navigation' ? 'cmd' : 'scr')
    const operation = clientOperationId ?? commandId
    const inputHash = hashInput({ kind, ...input })
    const earlier = await store.findOperation(sessionId, operation)
    if (earlier) return repeat(earlier, inputHash)

    const installation = await installationOf(session)
    if (!installation.capabilities[capabilityOf[kind]]) throw new ServiceError(ErrorCode.ROUTE_NOT_ADVERTISED)
    const details = 'url' in input ? checkNavigation(input, session, installation) : checkScreenshot(input)
    const requestedAt = new Date(now())
    const command: Command = {
      commandId,
      kind,
      workspaceId: session.workspaceId,
      sessionId,
      conversationId: session.conversationId,
      ...details,
      requestedBy: subject,
      operationId: operation,
      inputHash,
      state: 'requested',
      requestedAt,
      expiresAt: new Date(now() + settings.lifetime * 1000),
      deleteAt: new Date(now() + settings.retention * dayMs),
      transitions: [{ state: 'requested', at: requestedAt, by: subject }],
      uploads: [],
    }
    if (!(await store.insert(command))) {
      const rival = await store.findOperation(sessionId, operation)
      if (!rival) throw new ServiceError(ErrorCode.INTERNAL_ERROR)
      return repeat(rival, inputHash)
    }
    await announce(command)
    return { content: command, replayed: false }
  }

  async function repeat(command: Command, inputHash: string): Promise<Repeatable<Command>> {
    if (command.inputHash !== inputHash) throw new ServiceError(ErrorCode.IDEMPOTENCY_CONFLICT)
    if (stateAt(command, now()) === 'requested') await announce(command)
    return { content: progressAt(command, now()), replayed: true }
  }

  async function installationOf({ sessionId, publicSiteKey }: Session): Promise<Installation> {
    const { end } = await access.endOf(sessionId)
    if (end) throw new ServiceError(sessionEndCodes[end])
    const installation = await installations.get(publicSiteKey)
    if (!installation?.enabled) throw new ServiceError(ErrorCode.INSTALLATION_NOT_FOUND)
    return installation
  }

  /** Its operation key makes each event of a command one, whoever writes it how often. */
  async function tell(command: Command, type: CommandEventType, data: Record<string, unknown>) {
    const { conversationId, sessionId, commandId } = command
    await log.append({ conversationId, sessionId, type, operationKey: `${commandId} ${type}`, inputHash: type, data })
  }

  function announce(command: Command): Promise<void> {
    const { commandId, url, label, purpose, transitions } = command
    // Of the request, whatever became of it since.
    const expiresAt = new Date((transitions[0]?.at.getTime() ?? 0) + settings.lifetime * 1000).toISOString()
    return command.kind === 'navigation'
      ? tell(command, 'navigation.requested', { commandId, url, label, expiresAt })
      : tell(command, 'screenshot.requested', { requestId: commandId, purpose, expiresAt })
  }

  async function find(commandId: string, workspaceId?: string): Promise<Command> {
    const command = await store.find(commandId)
    if (!command || (workspaceId !== undefined && command.workspaceId !== workspaceId)) {
      throw new ServiceError(ErrorCode.COMMAND_NOT_FOUND)
    }
    return command
  }

  /** Errors: `CommandNotFound`, `CommandExpired`, `CommandAlreadyResolved`. */
  async function take(commandId: string, to: CommandState, by: string): Promise<Command> {
    for (;;) {
      const command = await find(commandId)
      if (!isStepDue(command, to, now())) return command
      const at = new Date(now())
      const expiresAt = to === 'granted' ? new Date(now() + settings.lifetime * 1000) : undefined
      const moved = await store.move(commandId, command.state, { state: to, at, by }, expiresAt)
      if (moved) return moved
    }
  }

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
      key: idempotencyKey,
      input: { commandId, answer },
      keptFor: settings.idempotencyRetention,
      run: async () => {
        await ownCommand(store, kind, commandId, session.sessionId)
        const { state, expiresAt } = await take(commandId, answer, 'visitor')
        return { state, expiresAt }
      },
    })
    return { content: result, replayed }
  }

  return {
    requestNavigation: (navigation, operator) => request('navigation', navigation, operator),
    requestScreenshot: (screenshot, operator) => request('screenshot', screenshot, operator),

    async cancel(commandId, { subject, workspaceId }) {
      await find(commandId, workspaceId)
      const cancelled = await take(commandId, 'cancelled', subject)
      // First the request, should its writer have died before it: nobody is to hear of it after its end.
      await announce(cancelled)
      if (cancelled.kind === 'navigation') await tell(cancelled, 'navigation.cancelled', { commandId })
      else await tell(cancelled, 'screenshot.cancelled', { requestId: commandId })
      return cancelled
    },

    async find(commandId, workspaceId) {
      return progressAt(await find(commandId, workspaceId), now())
    },

    async list(sessionId, limit = listDefault, workspaceId) {
      await sessions.find(sessionId, workspaceId)
      validate(field('/limit', limit, integer(1, listMax)))
      return (await store.list(sessionId, limit)).map((command) => progressAt(command, now()))
    },

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

function checkNavigation(
  { url, label }: { url: string; label?: string },
  { origin }: Session,
  { origins }: Installation,
): { url: string; label?: string } {
  const rule = (value: string) => navigationIssue(value, [origin, ...origins])
  validate(field('/url', url, rule), field('/label', label, line(1, 128)))
  return { url: new URL(url).href, ...(label === undefined ? {} : { label }) }
}

function checkScreenshot({ purpose }: { purpose?: string }): { purpose?: string } {
  validate(field('/purpose', purpose, line(1, 256)))
  return purpose === undefined ? {} : { purpose }
}

/** Where a page may be sent: nowhere that its own site does not speak for. */
function navigationIssue(url: string, origins: string[]): string | undefined {
  if (url.length > 2048) return 'maxLength'
  const target = URL.parse(url)
  // Parsers drop or turn these, so that what is checked might not be what a page makes of it.
  if (!target || /[\s\p{Cc}\\]/u.test(url) || target.username !== '' || target.password !== '') return 'format'
  const isWeb = target.protocol === 'https:' || target.protocol === 'http:'
  return isWeb && isOriginAllowed(target.origin, origins) ? undefined : 'origin'
}
