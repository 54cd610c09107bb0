import { contractLimits } from '../../contract/limits.ts'
import { retryDelay } from '../../contract/retry-delay.ts'
import { byKey, createBatcher, fulfilled } from '../../platform/concurrency/batcher.ts'
import { type Core, dateOf, perCore } from '../core.ts'
import { field, integer, line, validate } from '../rules.ts'
import { handleFaults, observeHealth } from './faults.ts'
import {
  type AttemptFacts,
  type AttemptOutcome,
  type Delivery,
  type Ended,
  newAttemptIds,
  type Settlement,
} from './model.ts'
import { classify, maxUnreadableAnswers, retainedUntil } from './outcomes.ts'
import { announceDue, deliveryQueueOf } from './queue.ts'

export interface AttemptResult {
  deliveryId: string
  attemptId: string
  claimId: string
  durationMs: number
  /** Values that the worker received with the claim. If omitted, they are read from the database. */
  claimed?: { attemptNumber: number; subscriptionId: string }
  /** `released`: the worker returns the delivery unsent. */
  facts: AttemptFacts | 'released'
}

interface ResultSettlement {
  subscriptionId: string
  settlement: Settlement
}

const stateOf = perCore((core) => {
  /** The last of what follows from recorded results, by destination. */
  const following = new Map<string, Promise<void>>()
  const record = async (results: AttemptResult[]) => fulfilled(await recordAll(core, results))
  const batcher = createBatcher(record, { sizeOf: () => 1000 })
  return { following, batcher }
})

/**
 * Records a result, together with others that arrive at the same time. Returns false if the worker no
 * longer holds the delivery; such a result changes nothing. A repeat changes nothing and returns true.
 * Resolves once everything that follows is done. Errors: `ValidationFailed`.
 */
export async function addResult(core: Core, result: AttemptResult): Promise<boolean> {
  validateResult(result)
  const { counted, followed } = await stateOf(core).batcher.add(result)
  await followed
  return counted
}

async function recordAll(core: Core, results: AttemptResult[]) {
  const found = await find(core, results, (result) => !isKnown(result))
  const settlements = new Map<string, ResultSettlement>()
  const at = dateOf(core)
  for (const result of results) {
    if (settlements.has(result.deliveryId)) continue
    const one = toSettlement(core, result, found.get(result.deliveryId), at)
    if (one) settlements.set(result.deliveryId, one)
  }
  const all = [...settlements.values()]
  const written = await deliveryQueueOf(core).settle(all.map(({ settlement }) => settlement))
  if (all.some(({ settlement }) => settlement.kind === 'release')) announceDue(core)
  // If a write did not apply, its result was recorded earlier or another claim took over.
  const isSettled = (result: AttemptResult) =>
    written === all.length && settlements.get(result.deliveryId)?.settlement.claimId === result.claimId
  const after = await find(core, results, (result) => !isSettled(result))
  const counted = results.map((result) => isSettled(result) || isRecorded(result, after.get(result.deliveryId)))
  const ids = new Set(results.filter((_, index) => counted[index]).map(idOf))
  const recorded = all.filter(({ settlement }) => settlement.kind === 'outcome' && ids.has(settlement.deliveryId))
  const followed = new Map<string, Promise<void>>()
  for (const [subscriptionId, theirs] of Map.groupBy(recorded, (each) => each.subscriptionId)) {
    const ended = theirs.map(({ settlement }) => settlement as Ended)
    const done = follow(core, subscriptionId, ended, at)
    for (const { deliveryId, outcome } of ended) {
      core.metrics.attempts.inc({ status: outcome.status, response_class: outcome.responseClass })
      followed.set(deliveryId, done)
    }
  }
  return results.map(({ deliveryId }, index) => ({ counted: counted[index]!, followed: followed.get(deliveryId) }))
}

async function find(core: Core, results: AttemptResult[], isWanted: (result: AttemptResult) => boolean) {
  const ids = new Set(results.filter(isWanted).map(idOf))
  const found = ids.size === 0 ? [] : await deliveryQueueOf(core).find([...ids])
  return byKey(found, ({ deliveryId }) => deliveryId)
}

/**
 * Whether the delivery need not be read. The time of a fault is the claim's `knownAt`, and an unreadable
 * answer counts with those of earlier attempts.
 */
function isKnown({ facts, claimed }: AttemptResult) {
  if (facts === 'released') return true
  const { fault, responseClass } = classify(facts)
  return claimed !== undefined && fault === undefined && responseClass !== 'unreadable_answer'
}

function toSettlement(
  core: Core,
  result: AttemptResult,
  delivery: Delivery | undefined,
  at: Date,
): ResultSettlement | undefined {
  if (delivery && !isClaimed(result, delivery)) return undefined
  const { deliveryId, claimId, attemptId, durationMs, facts, claimed } = result
  const subscriptionId = delivery?.subscriptionId ?? claimed?.subscriptionId ?? ''
  if (facts === 'released') return { subscriptionId, settlement: { kind: 'release', deliveryId, claimId, at } }
  const attemptNumber = delivery?.attempts.length ?? claimed?.attemptNumber
  if (attemptNumber === undefined) return undefined
  const { responseClass, retryAfterMs, fault, ...classified } = classify(facts)
  const alike = delivery?.attempts.filter(({ outcome }) => outcome?.responseClass === responseClass) ?? []
  const isExhausted = responseClass === 'unreadable_answer' && alike.length >= maxUnreadableAnswers - 1
  const retryable = classified.retryable && !isExhausted
  const delay = retryable ? retryDelay(attemptNumber, { retryAfterMs, random: core.random }) : undefined
  const outcome: AttemptOutcome = {
    status:
      responseClass === 'accepted'
        ? 'accepted'
        : delay !== undefined
          ? 'retry_scheduled'
          : retryable
            ? 'dead_lettered'
            : 'failed',
    responseClass,
    ...('reason' in facts
      ? { failureReason: facts.reason, failurePhase: facts.phase }
      : { responseStatus: facts.status, ...(responseClass !== 'accepted' && { responseText: facts.text }) }),
    durationMs,
    claimId,
  }
  const noticed = fault ?? (outcome.status === 'dead_lettered' ? 'dead_lettered' : undefined)
  const settlement: Settlement = {
    kind: 'outcome',
    deliveryId,
    claimId,
    at,
    attemptId,
    index: attemptNumber - 1,
    outcome,
    fault: noticed && { kind: noticed, attemptId, sentAt: delivery?.claim?.knownAt ?? at },
    ...(delay === undefined
      ? { deleteAt: retainedUntil(core, at) }
      : { retry: { ...newAttemptIds(), dueAt: new Date(at.getTime() + delay) } }),
  }
  return { subscriptionId, settlement }
}

/**
 * Handles what results say about their destinations, in order for each. A change of one waits for all
 * cores, so it holds up neither the others nor the recording of results.
 */
function follow(core: Core, subscriptionId: string, ended: Ended[], at: Date) {
  const { following } = stateOf(core)
  const next = (following.get(subscriptionId) ?? Promise.resolve())
    .catch(() => {})
    .then(() => observeHealth(core, subscriptionId, ended, at))
    .then(() => handleFaults(core, subscriptionId, ended))
    .finally(() => following.get(subscriptionId) === next && following.delete(subscriptionId))
  following.set(subscriptionId, next)
  next.catch(() => {})
  return next
}

/** No delivery has so many attempts. The database rejects much larger array indexes. */
const maxAttemptNumber = 1000

/** The errors name the paths of a message with only this result. */
function validateResult({ facts, claimed }: AttemptResult) {
  const answer = facts !== 'released' && 'status' in facts ? facts : undefined
  validate(
    field('/results/0/response/status', answer?.status, integer(100, 599)),
    field('/results/0/response/text', answer?.text, line(1, contractLimits.responseTextMaxLength)),
    field('/results/0/attemptNumber', claimed?.attemptNumber, integer(1, maxAttemptNumber)),
  )
}

function isClaimed({ attemptId, claimId }: AttemptResult, { status, claim, attempts }: Delivery) {
  return status === 'sending' && claim?.claimId === claimId && attempts.at(-1)?.attemptId === attemptId
}

function isRecorded({ attemptId, claimId, facts }: AttemptResult, delivery: Delivery | undefined) {
  if (facts === 'released') return delivery?.releasedClaimId === claimId
  return delivery?.attempts.find((attempt) => attempt.attemptId === attemptId)?.outcome?.claimId === claimId
}

const idOf = ({ deliveryId }: AttemptResult) => deliveryId
