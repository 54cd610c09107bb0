import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'
import { hashInput } from '../idempotency/idempotency.ts'
import { newId } from '../ids.ts'
import type { EventLog } from '../log/event-log.ts'
import type { CommandEventType } from '../log/model.ts'
import { operationKeys } from '../log/operation-keys.ts'
import { field, integer, line, operationId, validate } from '../rules.ts'
import type { Repeatable } from '../visitors/session-content.ts'
import type { Session } from '../visitors/session-store.ts'
import type { Sessions } from '../visitors/sessions.ts'
import { sessionEndCodes, type VisitorAccess } from '../visitors/visitor-access.ts'
import type { Directory } from '../workspaces/directory.ts'
import type { Installation } from '../workspaces/workspace-store.ts'
import { type CommandKind, progressAt, stateAt } from './command-states.ts'
import { takeStep } from './command-steps.ts'
import type { Command, CommandStore } from './command-store.ts'
import { navigationIssue } from './navigation-target.ts'

/** The caller: the subject of its token, and the one workspace it may act for, if limited. */
export interface Operator {
  subject: string
  workspaceId?: string
}

export interface NavigationRequest {
  sessionId: string
  url: string
  label?: string
  /** Absent: each call is a separate operation. */
  clientOperationId?: string
}

export interface ScreenshotRequest {
  sessionId: string
  purpose?: string
  clientOperationId?: string
}

export interface CommandSettings {
  /** Seconds for the decision. */
  lifetime: number
  /** Days until a command is deleted. */
  retention: number
}

export interface Commands {
  /**
   * Sends a request to the visitor of a live session. Errors: `NotFound`, those of an ended
   * session, `RouteNotAdvertised`, `ValidationFailed`, `IdempotencyConflict`, `ServiceUnavailable`
   * (the outcome is unknown; repeat the call).
   */
  requestNavigation(request: NavigationRequest, operator: Operator): Promise<Repeatable<Command>>
  requestScreenshot(request: ScreenshotRequest, operator: Operator): Promise<Repeatable<Command>>
  /** Errors: `CommandNotFound`, `CommandAlreadyResolved`, `CommandExpired`. */
  cancel(commandId: string, operator: Operator): Promise<Command>
  /** Errors: `CommandNotFound`, also for a command of another workspace. */
  find(commandId: string, workspaceId?: string): Promise<Command>
  /** Errors: `NotFound`, `ValidationFailed`. */
  list(sessionId: string, limit: number | undefined, workspaceId?: string): Promise<Command[]>
}

export interface CommandsDependencies {
  store: CommandStore
  sessions: Pick<Sessions, 'find'>
  access: VisitorAccess
  installations: Pick<Directory['installations'], 'get'>
  log: Pick<EventLog, 'append'>
  settings: CommandSettings
  now: () => number
}

const listMax = 100
const listDefault = 50
const capabilityOf = { navigation: 'navigation', screenshot: 'screenshots' } as const
const dayMs = 86_400_000

/** Commands to a visitor's page. Each needs the visitor's consent (contract, section 3). */
export function createCommands(dependencies: CommandsDependencies): Commands {
  const { store, sessions, access, installations, log, settings, now } = dependencies

  /**
   * The command is written before its event, and acknowledged after both. After a crash in between,
   * a repeat finds the command and writes the event. Without a repeat, the command expires unseen.
   */
  async function request(
    kind: CommandKind,
    { sessionId, clientOperationId, ...input }: NavigationRequest | ScreenshotRequest,
    { subject, workspaceId }: Operator,
  ): Promise<Repeatable<Command>> {
    validate(field('/clientOperationId', clientOperationId, operationId))
    const session = await sessions.find(sessionId, workspaceId)
    const commandId = newId(kind === 'navigation' ? 'cmd' : 'scr')
    // Callers cannot choose this id: their ids contain no space.
    const operation = clientOperationId ?? `own ${commandId}`
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

  /** The operation key makes each event of a command unique across repeats. */
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
    // The request's expiry, whatever its present state.
    const expiresAt = new Date((transitions[0]?.at.getTime() ?? 0) + settings.lifetime * 1000).toISOString()
    return command.kind === 'navigation'
      ? writeEvent(command, 'navigation.requested', { commandId, url, label, expiresAt })
      : writeEvent(command, 'screenshot.requested', { requestId: commandId, purpose, expiresAt })
  }

  async function find(commandId: string, workspaceId?: string): Promise<Command> {
    const command = await store.find(commandId)
    if (!command || (workspaceId !== undefined && command.workspaceId !== workspaceId)) {
      throw new ServiceError(ErrorCode.COMMAND_NOT_FOUND)
    }
    return command
  }

  return {
    requestNavigation: (navigation, operator) => request('navigation', navigation, operator),
    requestScreenshot: (screenshot, operator) => request('screenshot', screenshot, operator),

    async cancel(commandId, { subject, workspaceId }) {
      await find(commandId, workspaceId)
      const cancelled = await takeStep(store, now, { commandId, to: 'cancelled', by: subject })
      // Writes the request first, in case its writer died: the cancellation must follow it.
      await announce(cancelled)
      if (cancelled.kind === 'navigation') await writeEvent(cancelled, 'navigation.cancelled', { commandId })
      else await writeEvent(cancelled, 'screenshot.cancelled', { requestId: commandId })
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
