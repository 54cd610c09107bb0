import type { Logger } from 'pino'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { createSingleFlight } from '../concurrency/single-flight.ts'
import { ServiceError } from '../errors.ts'
import { newId } from '../ids.ts'
import type { EventLog } from '../log/event-log.ts'
import type { Agent, Author, LogEvent, TypingType } from '../log/model.ts'
import { operationKeys } from '../log/operation-keys.ts'
import { agentIssues, validate } from '../rules.ts'
import type { VisitorAccess, VisitorCredentials } from '../visitors/visitor-access.ts'
import type { ConversationAccess } from './conversation-access.ts'
import type { TypingStore, TypingTurn } from './typing-store.ts'

export type TypingState = 'started' | 'stopped'

export interface Typing {
  /**
   * Errors: those of VisitorAccess.authorize; RouteNotAdvertised if the installation has no typing.
   */
  setByVisitor(credentials: VisitorCredentials, state: TypingState): Promise<void>
  /** Default agent: the assigned one. Errors: NotFound, ValidationFailed. */
  setByAgent(
    request: { conversationId: string; state: TypingState; agent?: Agent },
    workspaceId: string | undefined,
  ): Promise<void>
  /** Ends the author's typing after a message. Never waits or fails: a missed turn expires. */
  endAfterMessage(message: LogEvent): void
  /** Ends expired turns. */
  endOverdue(): Promise<void>
  drain(): Promise<void>
}

export interface TypingSettings {
  /** Lifetime of a start without renewal, in milliseconds. */
  lastsMs: number
}

/** Turns per query of expired ones. */
const overdueBatch = 200
/**
 * Interval of lookups in milliseconds, each for all authors who wrote meanwhile. Few of them have a
 * turn.
 */
const paceMs = 200

/**
 * Who is typing. A turn is a document until it ends. Its events use operation keys derived from the
 * turn, so any process can finish a turn, and no event is written twice. In the log a turn is
 * always a start, its renewals, and one end: each step first ensures that the event of the previous
 * step is written.
 */
export function createTyping(dependencies: {
  store: TypingStore
  log: EventLog
  access: VisitorAccess
  conversationAccess: ConversationAccess
  logger: Logger
  now: () => number
  settings: TypingSettings
}): Typing {
  const { store, log, access, conversationAccess, logger, now, settings } = dependencies
  let ended = new Map<string, Date>()

  function write({ conversationId, turnId, author }: TypingTurn, type: TypingType, step: string) {
    const operationKey = operationKeys.typing(turnId, step)
    return log.append({ conversationId, type, operationKey, inputHash: step, transient: true, data: { author } })
  }

  const writeStart = (turn: TypingTurn) => write(turn, 'typing.started', `started ${turn.renewals}`)

  async function finish(turn: TypingTurn) {
    // A start that another process is still writing must not follow the end.
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

  /** Runs in the background of sends, with one lookup for all that arrived meanwhile. */
  const ending = createSingleFlight(
    () => ended.size > 0,
    async () => {
      const times = ended
      ended = new Map()
      try {
        const turns = await store.find([...times.keys()])
        await Promise.all(turns.filter(({ key, renewedAt }) => renewedAt <= times.get(key)!).map((turn) => end(turn)))
      } catch (error) {
        logger.warn({ reason: (error as Error).name }, 'ending typing failed; it will expire')
      }
    },
    { paceMs },
  )

  return {
    async setByVisitor(credentials, state) {
      const { session, installation } = await access.authorize(credentials)
      if (!installation.capabilities.typing) throw new ServiceError(ErrorCode.ROUTE_NOT_ADVERTISED)
      await set(session.conversationId, { kind: 'visitor' }, state)
    },

    async setByAgent({ conversationId, state, agent }, workspaceId) {
      const conversation = await conversationAccess.find(conversationId, workspaceId)
      const named = agent ?? conversation.assignment?.agent
      validate(...agentIssues(named ?? { displayName: '' }))
      await set(conversationId, { kind: 'agent', ...named }, state)
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
        if (turns.length < overdueBatch) return
      }
    },

    drain: ending.settled,
  }
}

/** A conversation has one visitor across sessions. Agents are distinguished by name. */
function keyOf(conversationId: string, { kind, displayName }: Author): string {
  return `${conversationId} ${kind} ${displayName ?? ''}`
}
