import type { FieldIssue } from '../../contract/errors.ts'
import { byKey, createBatchLoader } from '../../platform/concurrency/batcher.ts'
import { findSession } from '../bans/bans.ts'
import { type Core, dateOf, perCore } from '../core.ts'
import { inWorkspace, ServiceError } from '../errors.ts'
import { hashInput, type Repeatable } from '../idempotency/idempotency.ts'
import { newId } from '../ids.ts'
import { logOf } from '../log/event-log.ts'
import { type CommandEventType, operationKeys } from '../log-event.ts'
import { insertOnce } from '../mongodb/insert-each.ts'
import { imageTypes } from '../pictures/image-model.ts'
import { field, integer, line, oneOf, operationId, validate } from '../rules.ts'
import type { Session, VisitorOperation } from '../sessions/model.ts'
import { oncePerSession, sessionEndCodes, visitorAccessOf } from '../sessions/visitor-access.ts'
import type { Caller } from '../workspaces/access.ts'
import { type Installation, requireCapability } from '../workspaces/model.ts'
import { siteDirectoryOf } from '../workspaces/workspaces.ts'
import {
  type Command,
  type CommandKind,
  type CommandState,
  capabilityOf,
  isStepDue,
  type NavigationOutcome,
  navigationIssue,
  navigationOutcomes,
  progressAt,
  type ScreenshotConsent,
  screenshotConsents,
  stateAt,
  type Transition,
  toCommand,
} from './model.ts'

type Operator = Pick<Caller, 'subject' | 'workspaceId'>

interface ScreenshotRequest {
  sessionId: string
  purpose?: string
  /** Idempotency key of the request. Without it, each call is a separate operation. */
  clientOperationId?: string
}

type NavigationRequest = Omit<ScreenshotRequest, 'purpose'> & { url: string; label?: string }

const listMax = 100
const listDefault = 50
const dayMs = 86_400_000

/**
 * Sends a request to the visitor of a live session, who must consent to it (contract, section 3). Errors:
 * `NotFound` for an unknown session, the errors of an ended session, `RouteNotAdvertised`,
 * `ValidationFailed`, `IdempotencyConflict`, `ServiceUnavailable`. After `ServiceUnavailable` the outcome
 * is unknown, and the caller should retry.
 */
export const requestNavigation = (core: Core, navigation: NavigationRequest, operator: Operator) =>
  request(core, 'navigation', navigation, operator)

export const requestScreenshot = (core: Core, screenshot: ScreenshotRequest, operator: Operator) =>
  request(core, 'screenshot', screenshot, operator)

/** Errors: `CommandNotFound`, `CommandAlreadyResolved`, `CommandExpired`. */
export async function cancelCommand(
  core: Core,
  commandId: string,
  { subject, workspaceId }: Operator,
): Promise<Command> {
  await find(core, commandId, workspaceId)
  const cancelled = await takeStep(core, commandId, 'cancelled', subject)
  // The process that stored the command may have died before it wrote the event of the request, which
  // must come first.
  await announce(core, cancelled)
  if (cancelled.kind === 'navigation') await writeEvent(core, cancelled, 'navigation.cancelled', { commandId })
  else await writeEvent(core, cancelled, 'screenshot.cancelled', { requestId: commandId })
  return cancelled
}

/** Errors: `CommandNotFound`, also for a command of another workspace. */
export async function findCommand(core: Core, commandId: string, workspaceId?: string): Promise<Command> {
  return endedWithSession(core, await find(core, commandId, workspaceId))
}

/** Errors: `NotFound` for an unknown session, `ValidationFailed`. */
export async function listCommands(
  core: Core,
  sessionId: string,
  limit: number = listDefault,
  workspaceId?: string,
): Promise<Command[]> {
  await findSession(core, sessionId, workspaceId)
  validate(field('/limit', limit, integer(1, listMax)))
  const latest = { sort: { requestedAt: -1, _id: -1 }, limit } as const
  const found = await core.db.commands.find({ sessionId }, latest).toArray()
  return Promise.all(found.map((command) => endedWithSession(core, toCommand(command))))
}

const loaderOf = perCore(({ db: { commands } }) =>
  createBatchLoader(async (commandIds) => {
    const found = await commands.find({ _id: { $in: commandIds } }).toArray()
    return byKey(found.map(toCommand), ({ commandId }) => commandId)
  }),
)

async function find(core: Core, commandId: string, workspaceId?: string) {
  return inWorkspace(await loaderOf(core)(commandId), workspaceId, 'CommandNotFound')
}

/** Returns undefined if the state is no longer `from`. */
async function move({ db }: Core, _id: string, from: CommandState, step: Transition, expiresAt?: Date) {
  const moved = await db.commands.findOneAndUpdate(
    { _id, state: from },
    { $set: { state: step.state, expiresAt }, $push: { transitions: step } },
    { returnDocument: 'after' },
  )
  return moved ? toCommand(moved) : undefined
}

/**
 * Stores the command, then writes its event. If the process dies in between, a repeated call writes the
 * event. Without a repeat, the command expires and the visitor never sees it.
 */
async function request(
  core: Core,
  kind: CommandKind,
  { sessionId, clientOperationId, ...input }: NavigationRequest | ScreenshotRequest,
  { subject, workspaceId }: Operator,
): Promise<Repeatable<Command>> {
  const { config, db } = core
  validate(field('/clientOperationId', clientOperationId, operationId))
  const session = await findSession(core, sessionId, workspaceId)
  const commandId = newId(kind === 'navigation' ? 'cmd' : 'scr')
  // Ids that callers choose have no space, so they never equal this generated id.
  const operation = clientOperationId ?? `own ${commandId}`
  const inputHash = hashInput({ kind, ...input })
  const sent = { sessionId, operationId: operation }
  const earlier = await db.commands.findOne(sent)
  if (earlier) return repeat(core, toCommand(earlier), session, inputHash)

  const installation = await installationOf(core, session)
  requireCapability(installation, capabilityOf[kind])
  const details = 'url' in input ? checkNavigation(input, session, installation) : checkScreenshot(input)
  const requestedAt = dateOf(core)
  const command = {
    _id: commandId,
    kind,
    workspaceId: session.workspaceId,
    ...sent,
    conversationId: session.conversationId,
    ...details,
    requestedBy: subject,
    inputHash,
    state: 'requested' as const,
    requestedAt,
    expiresAt: dateOf(core, config.COMMAND_LIFETIME_SECONDS * 1000),
    deleteAt: dateOf(core, config.COMMAND_RETENTION_DAYS * dayMs),
    transitions: [{ state: 'requested' as const, at: requestedAt, by: subject }],
    uploads: [],
  }
  if (!(await insertOnce(db.commands, command))) {
    const rival = await db.commands.findOne(sent)
    if (!rival) throw new ServiceError('InternalError')
    return repeat(core, toCommand(rival), session, inputHash)
  }
  const content = toCommand(command)
  await announce(core, content)
  return { content, replayed: false }
}

/** Answers a repeated request. Writes no missing event if the capability was disabled since the first request. */
async function repeat(core: Core, command: Command, session: Session, inputHash: string) {
  if (command.inputHash !== inputHash) throw new ServiceError('IdempotencyConflict')
  const installation = await siteDirectoryOf(core).installations.get(session.publicSiteKey)
  const isOn = installation?.capabilities[capabilityOf[command.kind]]
  if (isOn && stateAt(command, core.now()) === 'requested') await announce(core, command)
  return { content: progressAt(command, core.now()), replayed: true }
}

async function installationOf(core: Core, { sessionId, publicSiteKey }: Session) {
  const { end } = await visitorAccessOf(core).endOf(sessionId)
  if (end) throw new ServiceError(sessionEndCodes[end])
  const installation = await siteDirectoryOf(core).installations.get(publicSiteKey)
  if (!installation?.enabled) throw new ServiceError('InstallationNotFound')
  return installation
}

/** The operation key prevents a second event when the call is repeated. */
async function writeEvent(core: Core, command: Command, type: CommandEventType, data: Record<string, unknown>) {
  const { conversationId, sessionId, commandId } = command
  await logOf(core).append({
    conversationId,
    sessionId,
    type,
    operationKey: operationKeys.command(commandId, type),
    inputHash: type,
    data,
  })
}

function announce(core: Core, command: Command) {
  const { commandId, url, label, purpose, transitions } = command
  // Not `expiresAt` of the command, which changes when the visitor consents.
  const requestedAt = transitions[0]?.at.getTime() ?? 0
  const expiresAt = new Date(requestedAt + core.config.COMMAND_LIFETIME_SECONDS * 1000).toISOString()
  return command.kind === 'navigation'
    ? writeEvent(core, command, 'navigation.requested', { commandId, url, label, expiresAt })
    : writeEvent(core, command, 'screenshot.requested', { requestId: commandId, purpose, expiresAt })
}

/** Expires the request if its session has ended, because only that session could have answered it. */
async function endedWithSession(core: Core, command: Command) {
  const { commandId, sessionId } = command
  if (stateAt(command, core.now()) !== 'requested') return progressAt(command, core.now())
  const { end } = await visitorAccessOf(core).endOf(sessionId)
  if (!end) return command
  const step = { state: 'expired' as const, at: dateOf(core), by: 'clock' }
  return (await move(core, commandId, 'requested', step)) ?? find(core, commandId)
}

type Navigation = Pick<NavigationRequest, 'url' | 'label'>

function checkNavigation({ url, label }: Navigation, { origin }: Session, { origins }: Installation) {
  const rule = (value: string) => navigationIssue(value, [origin, ...origins])
  validate(field('/url', url, rule), field('/label', label, line(1, 128)))
  return { url: new URL(url).href, label }
}

function checkScreenshot({ purpose }: { purpose?: string }) {
  validate(field('/purpose', purpose, line(1, 256)))
  return { purpose }
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
) {
  const issue = field('/outcome', outcome, oneOf<string>(...navigationOutcomes))
  const answer = outcome as NavigationOutcome
  const { content, replayed } = await acknowledge(core, 'navigation', { ...operation, commandId, answer }, issue)
  return { content: { commandId, state: content.state }, replayed }
}

/** Returns the limits of the upload only while one is allowed. Errors: those of `acknowledgeNavigation`. */
export async function acknowledgeScreenshot(
  core: Core,
  { requestId: commandId, consent, ...operation }: VisitorOperation & { requestId: string; consent: string },
) {
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
    const { state, expiresAt } = await takeStep(core, commandId, answer, 'visitor', lifetime)
    return { state, expiresAt }
  })
}

/**
 * Changes the state of a command to `to` by compare-and-set, if it has another one. `by` is `visitor`, or the
 * name of the operator or service. With `lifetime`, the new state expires after this time in seconds. Errors:
 * `CommandNotFound`, `CommandExpired`, `CommandAlreadyResolved`.
 */
async function takeStep(core: Core, commandId: string, to: CommandState, by: string, lifetime?: number) {
  for (;;) {
    const command = await find(core, commandId)
    if (!isStepDue(command, to, core.now())) return command
    const expiresAt = lifetime === undefined ? undefined : dateOf(core, lifetime * 1000)
    const step = { state: to, at: dateOf(core), by }
    const moved = await move(core, commandId, command.state, step, expiresAt)
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
  const command = await find(core, commandId)
  if (command.sessionId !== sessionId || command.kind !== kind) throw new ServiceError('CommandNotFound')
  return command
}
