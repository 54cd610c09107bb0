import type { Logger } from 'pino'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { Bus } from '../bus.ts'
import { createSingleFlight } from '../concurrency/single-flight.ts'
import { ServiceError } from '../errors.ts'
import { newId } from '../ids.ts'
import type { EventLog } from '../log/event-log.ts'
import { type Agent, type Author, type EventType, type LogEvent, operationKeys, type TypingType } from '../log-event.ts'
import { msUntil } from '../mongodb/leases.ts'
import { agentIssues, validate } from '../rules.ts'
import type { VisitorCredentials } from '../sessions/model.ts'
import type { Observations } from '../visitors/service.ts'
import type { ConversationAccess } from './conversation-access.ts'
import type { TypingTurn } from './model.ts'
import type { HasSiteCapability } from './site-capabilities.ts'
import type { TypingStore } from './typing-store.ts'

export type TypingState = 'started' | 'stopped'

export interface Typing {
  /**
   * Starts or stops the visitor's typing. Errors: those of Observations.authorize.
   */
  setByVisitor(credentials: VisitorCredentials, state: TypingState): Promise<void>
  /**
   * Starts or stops an agent's typing. The default is the assigned agent. Errors: NotFound if the
   * conversation does not exist, ValidationFailed; RouteNotAdvertised if no installation of the
   * conversation supports typing.
   */
  setByAgent(
    request: { conversationId: string; state: TypingState; agent?: Agent },
    workspaceId: string | undefined,
  ): Promise<void>
  /**
   * Starts or stops a bot's typing. Errors: those of `setByAgent`; BotStopped if bots are stopped in
   * the conversation.
   */
  setByBot(
    request: { conversationId: string; state: TypingState; bot: Agent },
    workspaceId: string | undefined,
  ): Promise<void>
  /**
   * Ends the author's typing after a message. Never waits or fails, because typing that is not
   * ended expires.
   */
  endAfterMessage(message: LogEvent): void
  /**
   * Ends every typing turn that has expired, including turns that other processes began. Returns the
   * time in milliseconds until the next turn expires.
   */
  endOverdue(): Promise<number | undefined>
  drain(): Promise<void>
}

interface TypingSettings {
  /** Lifetime in milliseconds of a turn that is not renewed. */
  lastsMs: number
}

/** Number of turns in one query for expired turns. */
const overdueBatch = 200
/**
 * Minimum interval in milliseconds between two lookups by `ending`. One lookup covers all authors
 * who sent a message since the previous lookup. Most of these authors
 * have no typing turn.
 */
const paceMs = 200

/**
 * Records who is typing. A turn is a document until it ends. The operation keys of its events are
 * derived from the turn. So any process can finish a turn, and no event is written twice. In the
 * log, a turn is one start, then its renewals, then one end. Each step first ensures that the event
 * of the previous step is written.
 */
export function createTyping(dependencies: {
  store: TypingStore
  log: EventLog
  observations: Pick<Observations, 'authorize' | 'panelUsed'>
  conversationAccess: ConversationAccess
  hasSiteCapability: HasSiteCapability
  bus: Bus
  logger: Logger
  now: () => number
  settings: TypingSettings
}): Typing {
  const { store, log, observations, conversationAccess, hasSiteCapability, bus, logger, now, settings } = dependencies
  let ended = new Map<string, Date>()

  function write({ conversationId, turnId, author }: TypingTurn, type: TypingType, step: string) {
    const operationKey = operationKeys.typing(turnId, step)
    return log.append({ conversationId, type, operationKey, inputHash: step, transient: true, data: { author } })
  }

  const writeStart = (turn: TypingTurn) => write(turn, 'typing.started', `started ${turn.renewals}`)

  async function finish(turn: TypingTurn) {
    // The process that began the turn may not have written the start yet, so the start is written
    // before the end.
    await writeStart(turn)
    await write(turn, 'typing.stopped', 'stopped')
    await store.remove(turn)
  }

  async function end(turn: TypingTurn, asOf?: Date) {
    const claimed = await store.claimEnd(turn, asOf)
    if (claimed) await finish(claimed)
  }

  async function start(conversationId: string, author: Author) {
    const key = keyOf(conversationId, author)
    for (;;) {
      const renewedAt = new Date(now())
      const endsAt = new Date(now() + settings.lastsMs)
      const [turn] = await store.find([key])
      if (!turn) {
        const first: TypingTurn = {
          key,
          turnId: newId('typ'),
          conversationId,
          author,
          renewals: 0,
          renewedAt,
          endsAt,
        }
        if (await store.insert(first)) return void (await writeStart(first))
      } else if (turn.ending || turn.endsAt <= renewedAt) {
        await end(turn)
      } else if (turn.endsAt.getTime() - now() > settings.lastsMs / 2) {
        return
      } else {
        await writeStart(turn)
        if (await store.renew(turn, { renewedAt, endsAt }))
          return void (await writeStart({ ...turn, renewals: turn.renewals + 1 }))
      }
    }
  }

  async function set(conversationId: string, author: Author, state: TypingState) {
    if (state === 'started') return start(conversationId, author)
    const [turn] = await store.find([keyOf(conversationId, author)])
    if (turn) await end(turn)
  }

  /**
   * Ends the typing turns of authors who sent a message, in the background. One lookup covers many
   * authors.
   */
  const ending = createSingleFlight(
    () => ended.size > 0,
    async () => {
      const times = ended
      ended = new Map()
      try {
        const turns = await store.find([...times.keys()])
        await Promise.all(turns.filter(({ key, renewedAt }) => renewedAt <= times.get(key)!).map((turn) => end(turn)))
      } catch (error) {
        logger.warn({ reason: (error as Error).name }, 'ending typing after a message failed; the typing will expire')
      }
    },
    { paceMs },
  )

  /** Any process may end a turn, because the one that began it may die. */
  function typed({ type }: { type?: EventType } = {}) {
    if (type === 'typing.started') bus.emit('due', 'expire typing', settings.lastsMs)
  }
  bus.on('appended', typed)
  bus.on('advanced', (_conversationId, _end, event) => typed(event))

  return {
    async setByVisitor(credentials, state) {
      const { session } = await observations.authorize(credentials, 'typing')
      if (state === 'started') observations.panelUsed(session, 'report')
      await set(session.conversationId, { kind: 'visitor' }, state)
    },

    async setByAgent({ conversationId, state, agent }, workspaceId) {
      const conversation = await conversationAccess.find(conversationId, workspaceId)
      const named = agent ?? conversation.assignment?.agent
      validate(...agentIssues(named ?? { displayName: '' }))
      if (!(await hasSiteCapability(conversationId, 'typing'))) throw new ServiceError(ErrorCode.ROUTE_NOT_ADVERTISED)
      await set(conversationId, { kind: 'agent', ...named }, state)
    },

    async setByBot({ conversationId, state, bot }, workspaceId) {
      const { bots } = await conversationAccess.find(conversationId, workspaceId)
      validate(...agentIssues(bot, '/bot'))
      if (bots?.isStopped && state === 'started') throw new ServiceError(ErrorCode.BOT_STOPPED)
      if (!(await hasSiteCapability(conversationId, 'typing'))) throw new ServiceError(ErrorCode.ROUTE_NOT_ADVERTISED)
      await set(conversationId, { kind: 'bot', ...bot }, state)
    },

    endAfterMessage({ conversationId, occurredAt, message }) {
      if (!message) return
      ended.set(keyOf(conversationId, message.author), occurredAt)
      void ending.run()
    },

    async endOverdue() {
      const asOf = new Date(now())
      for (;;) {
        const turns = await store.overdue(asOf, overdueBatch)
        const outcomes = await Promise.allSettled(turns.map((turn) => end(turn, asOf)))
        const failed = outcomes.find((outcome) => outcome.status === 'rejected')
        if (failed) throw failed.reason
        if (turns.length < overdueBatch) return msUntil(await store.nextEnd(), now)
      }
    },

    drain: ending.settled,
  }
}

/**
 * Returns the key of an author's turn. A conversation has one visitor, even across sessions. Agents
 * are distinguished by name.
 */
function keyOf(conversationId: string, { kind, displayName }: Author): string {
  return `${conversationId} ${kind} ${displayName ?? ''}`
}
