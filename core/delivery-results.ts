import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { classify } from './delivery-outcomes.ts'
import { retryDelay } from './delivery-schedule.ts'
import type { AttemptFacts, AttemptOutcome } from './delivery-states.ts'
import type { DeliveryVerdicts } from './delivery-verdicts.ts'
import { ServiceError } from './errors.ts'
import { newId } from './ids.ts'
import { type CoreMetrics, createCoreMetrics } from './metrics.ts'
import type { PendingVerdict } from './store/delivery-holds.ts'
import type { DeliveryQueue, QueuedDelivery, Settlement } from './store/delivery-queue.ts'
import type { LeadSubscriptionStore } from './store/lead-subscriptions.ts'

export interface AttemptResult {
  deliveryId: string
  attemptId: string
  claimId: string
  durationMs: number
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

const maxResults = 1000

export function createDeliveryResults(dependencies: {
  queue: Pick<DeliveryQueue, 'find' | 'settle'>
  subscriptions: Pick<LeadSubscriptionStore, 'resetNotFound'>
  verdicts: Pick<DeliveryVerdicts, 'execute'>
  /** There is something to do for workers, at once. */
  announce: () => void
  metrics?: CoreMetrics
  logger: Logger
  settings: { retentionDays: number }
  now: () => number
  random: () => number
}): DeliveryResults {
  const { queue, subscriptions, verdicts, announce, logger, settings, now, random } = dependencies
  const { metrics = createCoreMetrics() } = dependencies

  function settlement(result: AttemptResult, delivery: QueuedDelivery, at: Date): Settlement {
    const { deliveryId, claimId, attemptId, durationMs, facts } = result
    if (facts === 'released') return { kind: 'release', deliveryId, claimId, at }
    const { responseClass, retryable, retryAfterMs, verdict } = classify(facts)
    const attemptNumber = delivery.attempts.length
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
    return {
      kind: 'outcome',
      deliveryId,
      claimId,
      at,
      index: attemptNumber - 1,
      outcome,
      ...(verdict && { verdict: { kind: verdict, attemptId, sentAt: delivery.claim?.at ?? at } }),
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
  }

  async function settle(settlements: Settlement[], found: Map<string, QueuedDelivery>) {
    const answered = settlements
      .filter((settled) => settled.kind === 'outcome' && settled.verdict?.kind !== 'not_found')
      .map(({ deliveryId }) => found.get(deliveryId)?.subscriptionId ?? '')
    const [written] = await Promise.all([
      queue.settle(settlements),
      answered.length === 0 ? undefined : subscriptions.resetNotFound([...new Set(answered)]),
    ])
    return written
  }

  /** The verdicts stay with their deliveries until they are executed, so that a failure here loses nothing. */
  async function executeVerdicts(settlements: Settlement[], found: Map<string, QueuedDelivery>) {
    const pending = settlements.flatMap((settled): PendingVerdict[] => {
      const subscriptionId = found.get(settled.deliveryId)?.subscriptionId
      if (settled.kind === 'release' || !settled.verdict || subscriptionId === undefined) return []
      return [{ ...settled.verdict, deliveryId: settled.deliveryId, subscriptionId }]
    })
    await verdicts
      .execute(pending)
      .catch((error: Error) => logger.warn({ reason: error.name }, 'subscriptions not judged, trying again later'))
  }

  return {
    async record(results) {
      validateResults(results)
      const ids = [...new Set(results.map(({ deliveryId }) => deliveryId))]
      const found = byId(await queue.find(ids))
      const settlements = new Map<string, Settlement>()
      const at = new Date(now())
      for (const result of results) {
        const delivery = found.get(result.deliveryId)
        if (delivery && isClaimed(result, delivery) && !settlements.has(result.deliveryId)) {
          settlements.set(result.deliveryId, settlement(result, delivery, at))
        }
      }
      const all = [...settlements.values()]
      if (all.length === 0) return results.map((result) => isRecorded(result, found.get(result.deliveryId)))
      const written = await settle(all, found)
      if (all.some(({ kind }) => kind === 'release')) announce()
      // Usually everything is written; otherwise somebody took a delivery over just now.
      const after = written === all.length ? undefined : byId(await queue.find(ids))
      const counted = results.map((result) =>
        after
          ? isRecorded(result, after.get(result.deliveryId))
          : settlements.get(result.deliveryId)?.claimId === result.claimId ||
            isRecorded(result, found.get(result.deliveryId)),
      )
      const recorded = new Set(results.filter((_, index) => counted[index]).map(({ deliveryId }) => deliveryId))
      const counting = all.filter(({ deliveryId }) => recorded.has(deliveryId))
      for (const settled of counting) {
        if (settled.kind === 'release') continue
        const { status, responseClass } = settled.outcome
        metrics.attempts.inc({ status, response_class: responseClass })
      }
      await executeVerdicts(counting, found)
      return counted
    },
  }
}

function validateResults(results: AttemptResult[]) {
  const issues =
    results.length > maxResults
      ? [{ path: '/results', rule: 'maxItems' }]
      : results.flatMap(({ facts }, index) =>
          facts !== 'released' && 'status' in facts && (facts.status < 100 || facts.status > 599)
            ? [{ path: `/results/${index}/response/status`, rule: facts.status < 100 ? 'minimum' : 'maximum' }]
            : [],
        )
  if (issues.length > 0) throw new ServiceError(ErrorCode.VALIDATION_FAILED, { issues })
}

function isClaimed({ attemptId, claimId }: AttemptResult, { status, claim, attempts }: QueuedDelivery): boolean {
  return status === 'sending' && claim?.claimId === claimId && attempts.at(-1)?.attemptId === attemptId
}

/** Whether the result is in the books already. */
function isRecorded({ attemptId, claimId, facts }: AttemptResult, delivery: QueuedDelivery | undefined): boolean {
  if (facts === 'released') return delivery?.releasedClaimId === claimId
  return delivery?.attempts.find((attempt) => attempt.attemptId === attemptId)?.outcome?.claimId === claimId
}

const byId = (deliveries: QueuedDelivery[]) => new Map(deliveries.map((delivery) => [delivery.deliveryId, delivery]))
