import { contractLimits } from '../../contract/limits.ts'
import { requireConsent } from '../consents/consents.ts'
import type { Core } from '../core.ts'
import { unavailable } from '../errors.ts'
import { hashInput } from '../idempotency/idempotency.ts'
import { recordStatus } from '../log/conversation-store.ts'
import { type Appended, logOf } from '../log/event-log.ts'
import { eventsOf } from '../log/event-store.ts'
import { type EventType, operationKeys, type Rating } from '../log-event.ts'
import { field, integer, line, validate } from '../rules.ts'
import { operationSessionOf, type VisitorOperation } from '../sessions/model.ts'
import { visitorAccessOf } from '../sessions/visitor-access.ts'
import { requireCapability } from '../workspaces/model.ts'
import { appendGuarded, eventOfOperation, maxTries, readEnd } from './guarded-appends.ts'
import { type RatingState, ratingOf } from './model.ts'

const states: Partial<Record<EventType, RatingState>> = { 'rating.requested': 'requested', 'rating.given': 'given' }
const deciding: EventType[] = ['conversation.closed', 'rating.requested', 'rating.given']

/** Asks the visitor once for each closing. Does nothing if the conversation was reopened meanwhile. */
export async function requestRating(core: Core, conversationId: string) {
  for (let tries = 0; tries < maxTries; tries += 1) {
    const { end, closed, state } = await readRating(core, conversationId)
    if (!closed || state) return
    if (await logOf(core).appendAfter(end, { conversationId, type: 'rating.requested' })) return
  }
  throw unavailable()
}

/**
 * A rating is given at most once for each closing, also at several cores, because the newest event about
 * the rating since the closing determines its state. Errors: those of VisitorAccess.authorize,
 * RouteNotAdvertised, ValidationFailed, ConsentRequired, RatingNotRequested, RatingAlreadyGiven,
 * IdempotencyConflict, ServiceUnavailable.
 */
export async function giveRating(
  core: Core,
  { credentials, idempotencyKey, score, comment }: VisitorOperation & Rating,
): Promise<Appended> {
  const visitor = await visitorAccessOf(core).authorize(credentials)
  const { session, installation } = visitor
  requireCapability(installation, 'rating')
  validate(
    field('/score', score, integer(1, contractLimits.ratingScoreMax)),
    field('/comment', comment, line(1, contractLimits.ratingCommentMaxLength)),
  )
  const { conversationId } = session
  const data = { score, ...(comment !== undefined && { comment }) }
  const operation = {
    conversationId,
    operationKey: operationKeys.rating(operationSessionOf(session), idempotencyKey),
    inputHash: hashInput(data),
  }
  await requireConsent(core, visitor, async () => (await eventOfOperation(core, operation)) !== undefined)
  const given = await appendGuarded(core, { ...operation, type: 'rating.given', data }, async () => {
    const { end, state } = await readRating(core, conversationId)
    const refusal = state === 'given' ? 'RatingAlreadyGiven' : 'RatingNotRequested'
    return { end, refusal: state === 'requested' ? undefined : refusal }
  })
  await recordStatus(core, [{ conversationId, rating: ratingOf(given.event) }])
  return given
}

/** The state of a closed conversation's rating after the event `through`. */
export async function ratingStateAt(
  core: Core,
  conversationId: string,
  through: number,
): Promise<RatingState | undefined> {
  const [newest] = await eventsOf(core).newestOf(deciding, { conversationId, through }, 1)
  return newest && states[newest.type]
}

async function readRating(core: Core, conversationId: string) {
  const { sequence: end, closed } = await readEnd(core, conversationId)
  return { end, closed, state: closed ? await ratingStateAt(core, conversationId, end) : undefined }
}
