import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { inWorkspace, ServiceError } from '../errors.ts'
import { hashInput, type Repeatable } from '../idempotency/idempotency.ts'
import { newId } from '../ids.ts'
import type { EventLog } from '../log/event-log.ts'
import { type CommandEventType, operationKeys } from '../log-event.ts'
import { field, integer, line, operationId, validate } from '../rules.ts'
import type { Session } from '../sessions/model.ts'
import { sessionEndCodes, type VisitorAccess } from '../sessions/visitor-access.ts'
import type { Sessions } from '../visitors/service.ts'
import { requireCapability } from '../workspaces/capabilities.ts'
import type { Installation } from '../workspaces/model.ts'
import type { SiteDirectory } from '../workspaces/workspaces.ts'
import { takeStep } from './command-decisions.ts'
import type { CommandStore } from './command-store.ts'
import { type Command, type CommandKind, capabilityOf, navigationIssue, progressAt, stateAt } from './model.ts'

/**
 * The caller of an operator function. `subject` is the name in its token. If `workspaceId` is set,
 * the caller may access only that workspace.
 */
export interface Operator {
  subject: string
  workspaceId?: string
}

interface NavigationRequest {
  sessionId: string
  url: string
  label?: string
  /** Idempotency key of the request. Without it, each call is a separate operation. */
  clientOperationId?: string
}

interface ScreenshotRequest {
  sessionId: string
  purpose?: string
  clientOperationId?: string
}

interface CommandSettings {
  /** Time in seconds within which the visitor must decide. */
  lifetime: number
  /** Time in days after which a command is deleted. */
  retention: number
}

export interface Commands {
  /**
   * Sends a request to the visitor of a live session. Errors: `NotFound` for an unknown session,
   * the errors of an ended session, `RouteNotAdvertised`, `ValidationFailed`,
   * `IdempotencyConflict`, `ServiceUnavailable`. After `ServiceUnavailable` the outcome is unknown,
   * and the caller should retry.
   */
  requestNavigation(request: NavigationRequest, operator: Operator): Promise<Repeatable<Command>>
  requestScreenshot(request: ScreenshotRequest, operator: Operator): Promise<Repeatable<Command>>
  /** Cancels a command. Errors: `CommandNotFound`, `CommandAlreadyResolved`, `CommandExpired`. */
  cancel(commandId: string, operator: Operator): Promise<Command>
  /** Returns a command. Errors: `CommandNotFound`, also for a command of another workspace. */
  find(commandId: string, workspaceId?: string): Promise<Command>
  /**
   * Returns the commands of a session. Errors: `NotFound` for an unknown session,
   * `ValidationFailed`.
   */
  list(sessionId: string, limit: number | undefined, workspaceId?: string): Promise<Command[]>
}

interface CommandsDependencies {
  store: CommandStore
  sessions: Pick<Sessions, 'find'>
  access: VisitorAccess
  installations: Pick<SiteDirectory['installations'], 'get'>
  log: Pick<EventLog, 'append'>
  settings: CommandSettings
  now: () => number
}

const listMax = 100
const listDefault = 50
const dayMs = 86_400_000

/**
 * Sends commands to a visitor's page. Each command needs the visitor's consent (contract, section
 * 3).
 */
export function createCommands(dependencies: CommandsDependencies): Commands {
  const { store, sessions, access, installations, log, settings, now } = dependencies

  /**
   * Stores the command first, then writes its event. The call resolves after both writes. If the
   * process dies between the writes, a repeated call finds the command and writes the event.
   * Without a repeat, the command expires and the visitor never sees it.
   */
  async function request(
    kind: CommandKind,
    { sessionId, clientOperationId, ...input }: NavigationRequest | ScreenshotRequest,
    { subject, workspaceId }: Operator,
  ): Promise<Repeatable<Command>> {
    validate(field('/clientOperationId', clientOperationId, operationId))
    const session = await sessions.find(sessionId, workspaceId)
    const commandId = newId(kind === 'navigation' ? 'cmd' : 'scr')
    // The ids that callers choose contain no space, so they cannot conflict with this generated id.
    const operation = clientOperationId ?? `own ${commandId}`
    const inputHash = hashInput({ kind, ...input })
    const earlier = await store.findOperation(sessionId, operation)
    if (earlier) return repeat(earlier, session, inputHash)

    const installation = await installationOf(session)
    requireCapability(installation, capabilityOf[kind])
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
      return repeat(rival, session, inputHash)
    }
    await announce(command)
    return { content: command, replayed: false }
  }

  /**
   * Returns the command of a repeated request. If the capability has been disabled since the first
   * request, this call does not write a missing event of the command. The command then expires.
   */
  async function repeat(command: Command, session: Session, inputHash: string): Promise<Repeatable<Command>> {
    if (command.inputHash !== inputHash) throw new ServiceError(ErrorCode.IDEMPOTENCY_CONFLICT)
    const installation = await installations.get(session.publicSiteKey)
    const isOn = installation?.capabilities[capabilityOf[command.kind]]
    if (isOn && stateAt(command, now()) === 'requested') await announce(command)
    return { content: progressAt(command, now()), replayed: true }
  }

  async function installationOf({ sessionId, publicSiteKey }: Session): Promise<Installation> {
    const { end } = await access.endOf(sessionId)
    if (end) throw new ServiceError(sessionEndCodes[end])
    const installation = await installations.get(publicSiteKey)
    if (!installation?.enabled) throw new ServiceError(ErrorCode.INSTALLATION_NOT_FOUND)
    return installation
  }

  /**
   * Writes an event of a command. The operation key prevents a second event when the call is
   * repeated.
   */
  async function writeEvent(command: Command, type: CommandEventType, data: Record<string, unknown>) {
    const { conversationId, sessionId, commandId } = command
    await log.append({
      conversationId,
      sessionId,
      type,
      operationKey: operationKeys.command(commandId, type),
      inputHash: type,
      data,
    })
  }

  function announce(command: Command): Promise<void> {
    const { commandId, url, label, purpose, transitions } = command
    // The event states when the request expires. `expiresAt` of the command is not used, because it
    // changes when the visitor consents.
    const expiresAt = new Date((transitions[0]?.at.getTime() ?? 0) + settings.lifetime * 1000).toISOString()
    return command.kind === 'navigation'
      ? writeEvent(command, 'navigation.requested', { commandId, url, label, expiresAt })
      : writeEvent(command, 'screenshot.requested', { requestId: commandId, purpose, expiresAt })
  }

  async function find(commandId: string, workspaceId?: string): Promise<Command> {
    return inWorkspace(await store.find(commandId), workspaceId, ErrorCode.COMMAND_NOT_FOUND)
  }

  /**
   * Expires the request if its session has ended, for example after a login. Only that session
   * could have answered the request.
   */
  async function endedWithSession(command: Command): Promise<Command> {
    const { commandId, sessionId } = command
    if (stateAt(command, now()) !== 'requested') return progressAt(command, now())
    const { end } = await access.endOf(sessionId)
    if (!end) return command
    const expired = await store.move(commandId, 'requested', { state: 'expired', at: new Date(now()), by: 'clock' })
    return expired ?? find(commandId)
  }

  return {
    requestNavigation: (navigation, operator) => request('navigation', navigation, operator),
    requestScreenshot: (screenshot, operator) => request('screenshot', screenshot, operator),

    async cancel(commandId, { subject, workspaceId }) {
      await find(commandId, workspaceId)
      const cancelled = await takeStep(store, now, { commandId, to: 'cancelled', by: subject })
      // The event of the request must come before the cancellation event. If the process that
      // stored the command died, the event of the request may be missing. So this call writes the
      // event of the request first.
      await announce(cancelled)
      if (cancelled.kind === 'navigation') await writeEvent(cancelled, 'navigation.cancelled', { commandId })
      else await writeEvent(cancelled, 'screenshot.cancelled', { requestId: commandId })
      return cancelled
    },

    find: async (commandId, workspaceId) => endedWithSession(await find(commandId, workspaceId)),

    async list(sessionId, limit = listDefault, workspaceId) {
      await sessions.find(sessionId, workspaceId)
      validate(field('/limit', limit, integer(1, listMax)))
      return Promise.all((await store.list(sessionId, limit)).map(endedWithSession))
    },
  }
}

function checkNavigation(
  { url, label }: { url: string; label?: string },
  { origin }: Session,
  { origins }: Installation,
): { url: string; label?: string } {
  const rule = (value: string) => navigationIssue(value, [origin, ...origins])
  validate(field('/url', url, rule), field('/label', label, line(1, 128)))
  return { url: new URL(url).href, label }
}

function checkScreenshot({ purpose }: { purpose?: string }): { purpose?: string } {
  validate(field('/purpose', purpose, line(1, 256)))
  return { purpose }
}
