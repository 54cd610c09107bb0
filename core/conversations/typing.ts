/**
 * A turn of typing is a document until it ends. The operation keys of its events are derived from it, so
 * any process can finish a turn, and no event is written twice. In the log, a turn is one start, then its
 * renewals, then one end. Each step first ensures that the event of the step before is written.
 */

import { createLruCache } from '../../platform/lru-cache.ts'
import { createSingleFlight } from '../concurrency/single-flight.ts'
import { authorizeReport, notePanelUse } from '../consents/observations.ts'
import { type Core, dateOf, perCore } from '../core.ts'
import { logFailure, type Scope, ServiceError } from '../errors.ts'
import { newId } from '../ids.ts'
import { logOf } from '../log/event-log.ts'
import { type Agent, type Author, type LogEvent, operationKeys, type TypingType } from '../log-event.ts'
import { insertOnce } from '../mongodb/insert-each.ts'
import { msUntil } from '../mongodb/leases.ts'
import { agentIssues, validate } from '../rules.ts'
import type { VisitorCredentials } from '../sessions/model.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import { findConversation, hasSiteCapability } from './conversation-access.ts'
import type { TypingTurn } from './model.ts'

export type TypingState = 'started' | 'stopped'

const overdueBatch = 200
/** Maximum number of conversations in which a message ends typing on a core that runs alone. */
const maxTyped = 10_000
/** Pause between two lookups after messages. Most authors have no typing turn. */
const paceMs = 200

/** Lifetime of a turn that is not renewed. */
const lastsMs = ({ config }: Core) => config.TYPING_SECONDS * 1000

/** Errors: those of `authorizeReport`. */
export async function setTypingOfVisitor(core: Core, credentials: VisitorCredentials, state: TypingState) {
  const { session } = await authorizeReport(core, credentials, 'typing')
  if (state === 'started') notePanelUse(core, session, 'report')
  await set(core, session.conversationId, { kind: 'visitor' }, state)
}

/**
 * The default agent is the assigned one. Errors: NotFound, ValidationFailed; RouteNotAdvertised if no
 * installation of the conversation supports typing.
 */
export async function setTypingOfAgent(
  core: Core,
  { conversationId, state, agent }: { conversationId: string; state: TypingState; agent?: Agent },
  scope: Scope,
) {
  const { assignment } = await findConversation(core, conversationId, scope)
  const named = agent ?? assignment?.agent
  validate(...agentIssues(named ?? { displayName: '' }))
  await setInSite(core, conversationId, { kind: 'agent', ...named }, state)
}

/** Errors: those of `setTypingOfAgent`; BotStopped if bots are stopped in the conversation. */
export async function setTypingOfBot(
  core: Core,
  { conversationId, state, bot }: { conversationId: string; state: TypingState; bot: Agent },
  scope: Scope,
) {
  const { bots } = await findConversation(core, conversationId, scope)
  validate(...agentIssues(bot, '/bot'))
  if (bots?.isStopped && state === 'started') throw new ServiceError('BotStopped')
  await setInSite(core, conversationId, { kind: 'bot', ...bot }, state)
}

async function setInSite(core: Core, conversationId: string, author: Author, state: TypingState) {
  if (!(await hasSiteCapability(core, conversationId, 'typing'))) throw new ServiceError('RouteNotAdvertised')
  await set(core, conversationId, author, state)
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
        logFailure(core.logger, 'ending typing after a message failed; the typing will expire')(error)
      }
    },
    { paceMs },
  )

  /** Time at which somebody last typed. A core that runs alone knows it, unless it has just started. */
  const typedAt = createLruCache<number>(maxTyped)
  const createdAt = core.now()

  function mayType(conversationId: string) {
    const since = Math.max(createdAt, typedAt.get(conversationId) ?? 0)
    return core.now() - since <= lastsMs(core) || !wakeupsOf(core).isAlone()
  }

  /** Any process may end a turn, because the one that began it may die. */
  function typed({ type, conversationId = '' }: Partial<LogEvent> = {}) {
    if (type !== 'typing.started') return
    typedAt.set(conversationId, core.now())
    core.bus.emit('due', 'expire typing', lastsMs(core))
  }
  core.bus.on('appended', typed)
  core.bus.on('advanced', (_conversationId, _end, event) => typed(event))

  return {
    /** Called before a turn is stored, because its author's message may come before its start event. */
    begin: (conversationId: string) => void typedAt.set(conversationId, core.now()),
    /** Ends the author's typing. Never waits or fails, because typing that is not ended expires. */
    add({ conversationId, occurredAt, message }: LogEvent) {
      if (!message || !mayType(conversationId)) return
      ended.set(keyOf(conversationId, message.author), occurredAt)
      void ending.run()
    },
    drain: ending.settled,
  }
})

/** Ends expired turns, also of other processes. Returns the time until the next turn expires. */
export async function endOverdueTyping(core: Core): Promise<number | undefined> {
  const { typing } = core.db
  const asOf = dateOf(core)
  for (;;) {
    const turns = await typing.find({ endsAt: { $lte: asOf } }, { sort: { endsAt: 1 }, limit: overdueBatch }).toArray()
    const outcomes = await Promise.allSettled(turns.map((turn) => end(core, turn, asOf)))
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    if (failed) throw failed.reason
    if (turns.length === overdueBatch) continue
    const next = await typing.findOne({}, { projection: { endsAt: 1 }, sort: { endsAt: 1 } })
    return msUntil(next?.endsAt, core.now)
  }
}

async function set(core: Core, conversationId: string, author: Author, state: TypingState) {
  if (state === 'started') return start(core, conversationId, author)
  const [turn] = await findTurns(core, [keyOf(conversationId, author)])
  if (turn) await end(core, turn)
}

async function start(core: Core, conversationId: string, author: Author) {
  const key = keyOf(conversationId, author)
  for (;;) {
    typingEndsOf(core).begin(conversationId)
    const renewedAt = dateOf(core)
    const endsAt = dateOf(core, lastsMs(core))
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

/** Finishes a turn, unless it has ended. With `asOf`, also leaves a turn that had not expired at that time. */
async function end(core: Core, { _id, turnId }: TypingTurn, asOf?: Date) {
  const turn = await core.db.typing.findOneAndUpdate(
    { _id, turnId, $or: asOf && [{ ending: true }, { endsAt: { $lte: asOf } }] },
    { $set: { ending: true } },
    { returnDocument: 'after' },
  )
  if (!turn) return
  // The process that began the turn may not have written the start yet.
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

/** A conversation has one visitor, even across sessions. Agents are distinguished by name. */
const keyOf = (conversationId: string, { kind, displayName }: Author) =>
  `${conversationId} ${kind} ${displayName ?? ''}`
