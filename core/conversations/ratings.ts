import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { contractLimits } from '../../contract/limits.ts'
import { unavailable } from '../errors.ts'
import { hashInput } from '../idempotency/idempotency.ts'
import type { Appended, EventLog } from '../log/event-log.ts'
import type { EventStore } from '../log/event-store.ts'
import { type EventType, type LogEnd, operationKeys, type Rating } from '../log-event.ts'
import { field, integer, line, validate } from '../rules.ts'
import { operationSessionOf, type VisitorCredentials } from '../sessions/model.ts'
import type { VisitorAccess } from '../sessions/visitor-access.ts'
import type { Consents } from '../visitors/service.ts'
import { requireCapability } from '../workspaces/capabilities.ts'
import type { ConversationStore } from './conversation-store.ts'
import { type GuardedAppends, maxTries } from './guarded-appends.ts'
import { type RatingState, ratingOf } from './model.ts'

export interface Ratings {
  /**
   * Asks the visitor of a closed conversation for a rating, once for each closing. Does nothing if
   * the conversation was reopened meanwhile.
   */
  request(conversationId: string): Promise<void>
  /**
   * Stores the visitor's rating. Errors: those of VisitorAccess.authorize, RouteNotAdvertised,
   * ValidationFailed, ConsentRequired, RatingNotRequested, RatingAlreadyGiven, IdempotencyConflict,
   * ServiceUnavailable.
   */
  give(request: { credentials: VisitorCredentials; idempotencyKey: string } & Rating): Promise<Appended>
  /** Returns the state of a closed conversation's rating after the event `through`. */
  stateAt(conversationId: string, through: number): Promise<RatingState | undefined>
}

const states: Partial<Record<EventType, RatingState>> = { 'rating.requested': 'requested', 'rating.given': 'given' }
const deciding: EventType[] = ['conversation.closed', 'rating.requested', 'rating.given']

/**
 * Ratings of closed conversations. The newest event about the rating since the closing determines
 * the state of the rating. So a rating is given at most once for each closing, also at several
 * cores.
 */
export function createRatings(dependencies: {
  access: VisitorAccess
  consents: Pick<Consents, 'require'>
  log: Pick<EventLog, 'appendAfter'>
  events: Pick<EventStore, 'newestOf'>
  guardedAppends: GuardedAppends
  /** Reads the stored ends of logs. The log then appends after these ends or later ones. */
  readEnds: (conversationIds: string[]) => Promise<Map<string, LogEnd>>
  store: Pick<ConversationStore, 'recordStatus'>
}): Ratings {
  const { access, consents, log, events, guardedAppends, readEnds, store } = dependencies

  async function stateAt(conversationId: string, through: number) {
    const [newest] = await events.newestOf(deciding, { conversationId, through }, 1)
    return newest && states[newest.type]
  }

  async function read(conversationId: string) {
    const { sequence: end = 0, closed = false } = (await readEnds([conversationId])).get(conversationId) ?? {}
    return { end, closed, state: closed ? await stateAt(conversationId, end) : undefined }
  }

  return {
    stateAt,

    async request(conversationId) {
      for (let tries = 0; tries < maxTries; tries += 1) {
        const { end, closed, state } = await read(conversationId)
        if (!closed || state) return
        if (await log.appendAfter(end, { conversationId, type: 'rating.requested' })) return
      }
      throw unavailable()
    },

    async give({ credentials, idempotencyKey, score, comment }) {
      const visitor = await access.authorize(credentials)
      const { session, installation } = visitor
      requireCapability(installation, 'rating')
      validate(
        field('/score', score, integer(1, 5)),
        field('/comment', comment, line(1, contractLimits.ratingCommentMaxLength)),
      )
      const { conversationId } = session
      const data = { score, ...(comment !== undefined && { comment }) }
      const operation = {
        conversationId,
        operationKey: operationKeys.rating(operationSessionOf(session), idempotencyKey),
        inputHash: hashInput(data),
      }
      await consents.require(visitor, async () => (await guardedAppends.eventOf(operation)) !== undefined)
      const given = await guardedAppends.append({ ...operation, type: 'rating.given', data }, async () => {
        const { end, state } = await read(conversationId)
        const refusal = state === 'given' ? ErrorCode.RATING_ALREADY_GIVEN : ErrorCode.RATING_NOT_REQUESTED
        return { end, refusal: state === 'requested' ? undefined : refusal }
      })
      await store.recordStatus([{ conversationId, rating: ratingOf(given.event) }])
      return given
    },
  }
}
