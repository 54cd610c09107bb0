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
  /** Errors: those of VisitorAccess.authorize, RouteNotAdvertised where the installation does not offer typing. */
  setByVisitor(credentials: VisitorCredentials, state: TypingState): Promise<void>
  /** Without an agent it is the assigned one. Errors: NotFound, ValidationFailed. */
  setByAgent(
    request: { conversationId: string; state: TypingState; agent?: Agent },
    workspaceId: string | undefined,
  ): Promise<void>
  /** A message ends its author's typing. Never waits, never fails: what is missed ends by itself. */
  endedBy(message: LogEvent): void
  /** Ends what nobody renewed. */
  endOverdue(): Promise<void>
  drain(): Promise<void>
}

export interface TypingSettings {
  /** Milliseconds after which a start ends by itself. */
  lastsMs: number
}

/** Turns that one pass ends. */
const overdueBatch = 200
/** Few of those who write were seen typing: one look this often, in milliseconds, for all that wrote meanwhile. */
const paceMs = 200

/**
 * Who types. A turn is a small document until it is over; its events are written by operation keys of the turn, so that any
 * process can take up what another one left, and none writes an event twice. In the log a turn is always a start, its
 * renewals, and one end after them: before a step is taken, the event of the step before is made sure of.
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
    // A start that is still on its way elsewhere must not come after the end.
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

  /** Off the way of the sends, and one look for all that came meanwhile. */
  const ending = createSingleFlight(
    () => ended.size > 0,
    async () => {
      const times = ended
      ended = new Map()
      try {
        const turns = await store.find([...times.keys()])
        await Promise.all(turns.filter(({ key, renewedAt }) => renewedAt <= times.get(key)!).map((turn) => end(turn)))
      } catch (error) {
        logger.warn({ reason: (error as Error).name }, 'typing not ended, it ends by itself')
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

    endedBy({ conversationId, occurredAt, message }) {
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

/** A conversation has one visitor, whatever the sessions, and agents are told apart by name. */
function keyOf(conversationId: string, { kind, displayName }: Author): string {
  return `${conversationId} ${kind} ${displayName ?? ''}`
}
