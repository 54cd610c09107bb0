/**
 * Records who is typing. A turn is a document until it ends. The operation keys of its events are
 * derived from the turn. So any process can finish a turn, and no event is written twice. In the
 * log, a turn is one start, then its renewals, then one end. Each step first ensures that the event
 * of the previous step is written.
 */

import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { createSingleFlight } from '../concurrency/single-flight.ts'
import { authorizeReport, notePanelUse } from '../consents/observations.ts'
import { type Core, perCore } from '../core.ts'
import { ServiceError } from '../errors.ts'
import { newId } from '../ids.ts'
import { logOf } from '../log/event-log.ts'
import { type Agent, type Author, type EventType, type LogEvent, operationKeys, type TypingType } from '../log-event.ts'
import { insertOnce } from '../mongodb/insert-each.ts'
import { msUntil } from '../mongodb/leases.ts'
import { agentIssues, validate } from '../rules.ts'
import type { VisitorCredentials } from '../sessions/model.ts'
import { findConversation, hasSiteCapability } from './conversation-access.ts'
import type { TypingTurn } from './model.ts'

export type TypingState = 'started' | 'stopped'

/** Number of turns in one query for expired turns. */
const overdueBatch = 200
/**
 * Minimum interval in milliseconds between two lookups by `typingEndsOf`. One lookup covers all authors
 * who sent a message since the previous lookup. Most of these authors
 * have no typing turn.
 */
const paceMs = 200

/** Lifetime in milliseconds of a turn that is not renewed. */
const lastsMs = ({ config }: Core) => config.TYPING_SECONDS * 1000

/**
 * Starts or stops the visitor's typing. Errors: those of Observations.authorize.
 */
export async function setTypingOfVisitor(core: Core, credentials: VisitorCredentials, state: TypingState) {
  const { session } = await authorizeReport(core, credentials, 'typing')
  if (state === 'started') notePanelUse(core, session, 'report')
  await set(core, session.conversationId, { kind: 'visitor' }, state)
}

/**
 * Starts or stops an agent's typing. The default is the assigned agent. Errors: NotFound if the
 * conversation does not exist, ValidationFailed; RouteNotAdvertised if no installation of the
 * conversation supports typing.
 */
export async function setTypingOfAgent(
  core: Core,
  { conversationId, state, agent }: { conversationId: string; state: TypingState; agent?: Agent },
  workspaceId: string | undefined,
) {
  const { assignment } = await findConversation(core, conversationId, workspaceId)
  const named = agent ?? assignment?.agent
  validate(...agentIssues(named ?? { displayName: '' }))
  await requireTyping(core, conversationId)
  await set(core, conversationId, { kind: 'agent', ...named }, state)
}

/**
 * Starts or stops a bot's typing. Errors: those of `setTypingOfAgent`; BotStopped if bots are stopped in
 * the conversation.
 */
export async function setTypingOfBot(
  core: Core,
  { conversationId, state, bot }: { conversationId: string; state: TypingState; bot: Agent },
  workspaceId: string | undefined,
) {
  const { bots } = await findConversation(core, conversationId, workspaceId)
  validate(...agentIssues(bot, '/bot'))
  if (bots?.isStopped && state === 'started') throw new ServiceError(ErrorCode.BOT_STOPPED)
  await requireTyping(core, conversationId)
  await set(core, conversationId, { kind: 'bot', ...bot }, state)
}

async function requireTyping(core: Core, conversationId: string) {
  if (!(await hasSiteCapability(core, conversationId, 'typing'))) throw new ServiceError(ErrorCode.ROUTE_NOT_ADVERTISED)
}

/** Authors who sent a message, and whose typing ends in the background. */
export const typingEndsOf = perCore((core) => {
  let ended = new Map<string, Date>()

  const ending = createSingleFlight(
    () => ended.size > 0,
    async () => {
      const times = ended
      ended = new Map()
      try {
        const turns = await findTurns(core, [...times.keys()])
        const over = turns.filter(({ _id, renewedAt }) => renewedAt <= times.get(_id)!)
        await Promise.all(over.map((turn) => end(core, turn)))
      } catch (error) {
        const reason = (error as Error).name
        core.logger.warn({ reason }, 'ending typing after a message failed; the typing will expire')
      }
    },
    { paceMs },
  )

  /** Any process may end a turn, because the one that began it may die. */
  function typed({ type }: { type?: EventType } = {}) {
    if (type === 'typing.started') core.bus.emit('due', 'expire typing', lastsMs(core))
  }
  core.bus.on('appended', typed)
  core.bus.on('advanced', (_conversationId, _end, event) => typed(event))

  return {
    /**
     * Ends the author's typing after a message. Never waits or fails, because typing that is not
     * ended expires.
     */
    add({ conversationId, occurredAt, message }: LogEvent) {
      if (!message) return
      ended.set(keyOf(conversationId, message.author), occurredAt)
      void ending.run()
    },
    drain: ending.settled,
  }
})

/**
 * Ends every typing turn that has expired, including turns that other processes began. Returns the
 * time in milliseconds until the next turn expires.
 */
export async function endOverdueTyping(core: Core): Promise<number | undefined> {
  const { typing } = core.db
  const asOf = new Date(core.now())
  for (;;) {
    const overdue = typing.find({ endsAt: { $lte: asOf } }).sort({ endsAt: 1 })
    const turns = await overdue.limit(overdueBatch).toArray()
    const outcomes = await Promise.allSettled(turns.map((turn) => end(core, turn, asOf)))
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    if (failed) throw failed.reason
    if (turns.length === overdueBatch) continue
    const next = typing.find({}, { projection: { endsAt: 1 } }).sort({ endsAt: 1 })
    return msUntil((await next.limit(1).toArray())[0]?.endsAt, core.now)
  }
}

async function set(core: Core, conversationId: string, author: Author, state: TypingState) {
  if (state === 'started') return start(core, conversationId, author)
  const [turn] = await findTurns(core, [keyOf(conversationId, author)])
  if (turn) await end(core, turn)
}

async function start(core: Core, conversationId: string, author: Author): Promise<void> {
  const key = keyOf(conversationId, author)
  for (;;) {
    const renewedAt = new Date(core.now())
    const endsAt = new Date(core.now() + lastsMs(core))
    const [turn] = await findTurns(core, [key])
    if (!turn) {
      const first = { _id: key, turnId: newId('typ'), conversationId, author, renewals: 0, renewedAt, endsAt }
      if (await insertOnce(core.db.typing, first)) return void (await writeStart(core, first))
    } else if (turn.ending || turn.endsAt <= renewedAt) {
      await end(core, turn)
    } else if (turn.endsAt.getTime() - core.now() > lastsMs(core) / 2) {
      return
    } else {
      await writeStart(core, turn)
      const renewed = { renewedAt, endsAt, renewals: turn.renewals + 1 }
      const { modifiedCount } = await core.db.typing.updateOne(
        { _id: key, turnId: turn.turnId, renewals: turn.renewals, ending: { $exists: false } },
        { $set: renewed },
      )
      if (modifiedCount === 1) return void (await writeStart(core, { ...turn, ...renewed }))
    }
  }
}

/**
 * Marks a turn as ending and finishes it, unless it has ended. With `asOf`, also leaves a turn that has
 * not expired at that time.
 */
async function end(core: Core, { _id, turnId }: TypingTurn, asOf?: Date) {
  const turn = await core.db.typing.findOneAndUpdate(
    { _id, turnId, $or: asOf && [{ ending: true }, { endsAt: { $lte: asOf } }] },
    { $set: { ending: true } },
    { returnDocument: 'after' },
  )
  if (!turn) return
  // The process that began the turn may not have written the start yet, so the start is written
  // before the end.
  await writeStart(core, turn)
  await write(core, turn, 'typing.stopped', 'stopped')
  await core.db.typing.deleteOne({ _id, turnId })
}

function write(core: Core, { conversationId, turnId, author }: TypingTurn, type: TypingType, step: string) {
  const operationKey = operationKeys.typing(turnId, step)
  const draft = { conversationId, type, operationKey, inputHash: step, transient: true as const, data: { author } }
  return logOf(core).append(draft)
}

const writeStart = (core: Core, turn: TypingTurn) => write(core, turn, 'typing.started', `started ${turn.renewals}`)

const findTurns = ({ db }: Core, keys: string[]) => db.typing.find({ _id: { $in: keys } }).toArray()

/**
 * Returns the key of an author's turn. A conversation has one visitor, even across sessions. Agents
 * are distinguished by name.
 */
const keyOf = (conversationId: string, { kind, displayName }: Author) =>
  `${conversationId} ${kind} ${displayName ?? ''}`
