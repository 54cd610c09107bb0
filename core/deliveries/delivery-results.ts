import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import { newId } from '../ids.ts'
import { type CoreMetrics, createCoreMetrics } from '../metrics.ts'
import { field, integer, validate } from '../rules.ts'
import type { PendingVerdict } from './delivery-hold-store.ts'
import { classify } from './delivery-outcomes.ts'
import type { DeliveryQueue, QueuedDelivery, Settlement } from './delivery-queue.ts'
import { retryDelay } from './delivery-schedule.ts'
import type { AttemptFacts, AttemptOutcome } from './delivery-states.ts'
import type { DeliveryVerdicts } from './delivery-verdicts.ts'
import type { LeadSubscriptionStore } from './lead-subscription-store.ts'
import type { LiveSubscriptions } from './live-subscriptions.ts'

export interface AttemptResult {
  deliveryId: string
  attemptId: string
  claimId: string
  durationMs: number
  /** What the worker remembers of its claim; looked up where it is left out. */
  claimed?: { attemptNumber: number; subscriptionId: string }
  /** What the worker saw; `released` where it sent nothing. */
  facts: AttemptFacts | 'released'
}

export interface DeliveryResults {
  /**
   * What became of claimed deliveries, in their order: whether the result counts. It does not where the claim was lost;
   * nothing is changed then. The same result again changes nothing either, and counts. Errors: `ValidationFailed`.
   */
  record(results: AttemptResult[]): Promise<boolean[]>
}

/** What becomes of a delivery, and whose it is. */
interface Judged {
  subscriptionId: string
  settlement: Settlement
}

const maxResults = 1000

export function createDeliveryResults(dependencies: {
  queue: Pick<DeliveryQueue, 'find' | 'settle'>
  subscriptions: Pick<LeadSubscriptionStore, 'resetNotFound'>
  liveSubscriptions: Pick<LiveSubscriptions, 'find' | 'changed'>
  verdicts: Pick<DeliveryVerdicts, 'execute'>
  /** There is something to do for workers, at once. */
  announce: () => void
  metrics?: CoreMetrics
  logger: Logger
  settings: { retentionDays: number }
  now: () => number
  random: () => number
}): DeliveryResults {
  const { queue, subscriptions, liveSubscriptions, verdicts, announce, logger, settings, now, random } = dependencies
  const { metrics = createCoreMetrics() } = dependencies

  /** Where a result has to be judged by more than it says: a verdict counts from the moment that the claim goes by. */
  function isKnown({ facts, claimed }: AttemptResult): boolean {
    return facts === 'released' || (claimed !== undefined && classify(facts).verdict === undefined)
  }

  function judge(result: AttemptResult, delivery: QueuedDelivery | undefined, at: Date): Judged | undefined {
    if (delivery && !isClaimed(result, delivery)) return undefined
    const { deliveryId, claimId, attemptId, durationMs, facts, claimed } = result
    const subscriptionId = delivery?.subscriptionId ?? claimed?.subscriptionId ?? ''
    if (facts === 'released') return { subscriptionId, settlement: { kind: 'release', deliveryId, claimId, at } }
    const attemptNumber = delivery?.attempts.length ?? claimed?.attemptNumber
    if (attemptNumber === undefined) return undefined
    const { responseClass, retryable, retryAfterMs, verdict } = classify(facts)
    const delay = retryable ? retryDelay(attemptNumber, { retryAfterMs, random }) : undefined
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
        ? { failureReason: facts.reason, ...(facts.phase && { failurePhase: facts.phase }) }
        : { responseStatus: facts.status }),
      durationMs,
      claimId,
    }
    const settlement: Settlement = {
      kind: 'outcome',
      deliveryId,
      claimId,
      at,
      attemptId,
      index: attemptNumber - 1,
      outcome,
      ...(verdict && { verdict: { kind: verdict, attemptId, sentAt: delivery?.claim?.knownAt ?? at } }),
      ...(delay === undefined
        ? { deleteAt: new Date(at.getTime() + settings.retentionDays * 86_400_000) }
        : {
            retry: {
              attemptId: newId('att'),
              correlationId: randomUUID(),
              dueAt: new Date(at.getTime() + delay),
            },
          }),
    }
    return { subscriptionId, settlement }
  }

  /** Ends the row of 404s of those that answered something else, unless that disables them: then it ends with the enabling. */
  async function endRows(judged: Judged[]) {
    const answered = judged.filter(({ settlement }) => settlement.kind === 'outcome' && !settlement.verdict)
    const ids = [...new Set(answered.map(({ subscriptionId }) => subscriptionId))]
    const known = await Promise.all(ids.map(liveSubscriptions.find))
    const inARow = known.flatMap((each) =>
      each && each.subscription.notFound.length > 0 ? [each.subscription.subscriptionId] : [],
    )
    if (inARow.length === 0) return
    await subscriptions.resetNotFound(inARow)
    await liveSubscriptions.changed(...inARow)
  }

  /** The verdicts stay with their deliveries until they are executed, so that a failure here loses nothing. */
  async function executeVerdicts(judged: Judged[]) {
    const pending = judged.flatMap(({ subscriptionId, settlement }): PendingVerdict[] => {
      if (settlement.kind === 'release' || !settlement.verdict) return []
      return [{ ...settlement.verdict, deliveryId: settlement.deliveryId, subscriptionId }]
    })
    await verdicts
      .execute(pending)
      .catch((error: Error) => logger.warn({ reason: error.name }, 'subscriptions not judged, trying again later'))
  }

  const find = async (results: AttemptResult[]) =>
    results.length === 0 ? new Map<string, QueuedDelivery>() : byId(await queue.find([...new Set(results.map(idOf))]))

  return {
    async record(results) {
      validateResults(results)
      const found = await find(results.filter((result) => !isKnown(result)))
      const judged = new Map<string, Judged & { claimId: string }>()
      const at = new Date(now())
      for (const result of results) {
        if (judged.has(result.deliveryId)) continue
        const one = judge(result, found.get(result.deliveryId), at)
        if (one) judged.set(result.deliveryId, { ...one, claimId: result.claimId })
      }
      const all = [...judged.values()]
      const written = await queue.settle(all.map(({ settlement }) => settlement))
      if (all.some(({ settlement }) => settlement.kind === 'release')) announce()
      // Usually everything is written; otherwise it was told before, or somebody else took the delivery over.
      const settled = (result: AttemptResult) =>
        written === all.length && judged.get(result.deliveryId)?.claimId === result.claimId
      const after = await find(results.filter((result) => !settled(result)))
      const counted = results.map((result) => settled(result) || isRecorded(result, after.get(result.deliveryId)))
      const ids = new Set(results.filter((_, index) => counted[index]).map(idOf))
      const recorded = all.filter(({ settlement }) => ids.has(settlement.deliveryId))
      for (const { settlement } of recorded) {
        if (settlement.kind === 'release') continue
        const { status, responseClass } = settlement.outcome
        metrics.attempts.inc({ status, response_class: responseClass })
      }
      await endRows(recorded)
      await executeVerdicts(recorded)
      return counted
    },
  }
}

/** Far beyond what a delivery can come to; a place in a list that is larger still is more than the database takes. */
const maxAttemptNumber = 1000

function validateResults(results: AttemptResult[]) {
  if (results.length > maxResults) validate({ path: '/results', rule: 'maxItems' })
  const statusOf = ({ facts }: AttemptResult) => (facts !== 'released' && 'status' in facts ? facts.status : undefined)
  validate(
    ...results.flatMap((result, index) => [
      field(`/results/${index}/response/status`, statusOf(result), integer(100, 599)),
      field(`/results/${index}/attemptNumber`, result.claimed?.attemptNumber, integer(1, maxAttemptNumber)),
    ]),
  )
}

function isClaimed({ attemptId, claimId }: AttemptResult, { status, claim, attempts }: QueuedDelivery): boolean {
  return status === 'sending' && claim?.claimId === claimId && attempts.at(-1)?.attemptId === attemptId
}

/** Whether the result is in the books already. */
function isRecorded({ attemptId, claimId, facts }: AttemptResult, delivery: QueuedDelivery | undefined): boolean {
  if (facts === 'released') return delivery?.releasedClaimId === claimId
  return delivery?.attempts.find((attempt) => attempt.attemptId === attemptId)?.outcome?.claimId === claimId
}

const idOf = ({ deliveryId }: AttemptResult) => deliveryId
const byId = (deliveries: QueuedDelivery[]) => new Map(deliveries.map((delivery) => [delivery.deliveryId, delivery]))
