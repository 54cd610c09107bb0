import { setTimeout as delay } from 'node:timers/promises'
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import {
  AttemptPhase,
  type AttemptResult as AttemptResultMessage,
  type ClaimStateSchema,
  FailureReason,
  type HeldClaim,
  type WorkDeliveriesRequest,
  type WorkDeliveriesResponse,
  WorkDeliveriesResponseSchema,
} from '#proto/lead/v1/delivery_pb.js'
import type { Core } from '../../core.ts'
import { renewClaims } from '../../deliveries/claims.ts'
import { deliveryDispatchOf } from '../../deliveries/dispatch.ts'
import type { AttemptFacts } from '../../deliveries/model.ts'
import { type AttemptResult, addResult } from '../../deliveries/results.ts'
import { type ClaimedDelivery, countFittingBodies, newClaimId } from '../../deliveries/webhook-requests.ts'
import { createWorkerRoom } from '../../deliveries/worker-room.ts'
import { logFailure, ServiceError } from '../../errors.ts'
import { field, integer, line, validate } from '../../rules.ts'
import { nameOf } from '../proto-values.ts'

type ClaimState = MessageInitShape<typeof ClaimStateSchema>

const maxLimit = 20_000
const maxPerDestination = 1_000
/** Results and renewals without an answer. A worker with more is disconnected. */
const maxUnanswered = 50_000
/** The longest time that an answer to a result waits for the next message. */
const answerWithinMs = 50
/** How often a stopping worker's last deliveries are checked. */
const drainCheckMs = 5

/**
 * Modes of a worker's place: the worker has not said its name; it takes deliveries; it takes no more, and a claim
 * for it may be under way; none is; the worker knows this; its stream has ended.
 */
type Mode = 'joining' | 'open' | 'draining' | 'drained' | 'stopped' | 'closed'

/** Serves one worker. Deliveries that are not sent when the stream ends return to the queue. */
export async function* workDeliveries(
  core: Core,
  messages: AsyncIterable<WorkDeliveriesRequest>,
  signal: AbortSignal,
): AsyncGenerator<WorkDeliveriesResponse> {
  const { config, logger } = core
  const deliveryDispatch = deliveryDispatchOf(core)
  const gone = new AbortController()
  const room = createWorkerRoom({ limit: 0, perDestination: 1 })
  /** Destinations of deliveries without a result yet. */
  const sent = new Map<string, string>()
  const unsent: ClaimedDelivery[] = []
  let recorded: ClaimState[] = []
  let renewed: ClaimState[] = []
  let unanswered = 0
  let mode: Mode = 'joining'
  const isIn = (...modes: Mode[]) => modes.includes(mode)
  const recalled = new Set<string>()
  let failure: unknown
  let heardAt = performance.now()
  let wake: () => void = () => {}
  let leave: (() => void) | undefined
  let answering: NodeJS.Timeout | undefined
  let isAnswerDue = false

  function finish(error?: unknown) {
    failure ??= error
    mode = 'closed'
    gone.abort()
    leave?.()
    wake()
  }

  function join(workerId: string) {
    validate(field('/workerId', workerId, line(1, 64)))
    return deliveryDispatch.join({
      workerId,
      room,
      claimId: newClaimId(),
      signal: gone.signal,
      // A worker sends renewals or an empty message several times in each lease time.
      isResponsive: () => performance.now() - heardAt < config.DELIVERY_LEASE_MS,
      send(deliveries) {
        if (!isIn('open', 'draining')) return release(deliveries)
        for (const delivery of deliveries) sent.set(keyOf(delivery), delivery.destination)
        unsent.push(...deliveries)
        wake()
      },
      recall(destinations) {
        for (const each of destinations) recalled.add(each)
        wake()
      },
    })
  }

  function release(deliveries: ClaimedDelivery[]) {
    const results = deliveries.map((delivery) => ({ ...delivery, durationMs: 0, facts: 'released' as const }))
    Promise.all(results.map((result) => addResult(core, result))).catch(
      logFailure(logger, 'returning deliveries to the queue failed; they are retried when their lease expires'),
    )
  }

  function handle({ workerId, room: size, results, renewals }: WorkDeliveriesRequest) {
    heardAt = performance.now()
    if (isIn('joining')) {
      leave = join(workerId)
      mode = 'open'
    }
    if (size && !isIn('closed')) {
      validate(
        field('/room/limit', size.limit, integer(0, maxLimit)),
        field('/room/perDestination', size.perDestination, integer(1, maxPerDestination)),
      )
      room.resize(size)
      mode = size.limit > 0 ? 'open' : 'draining'
      deliveryDispatch.roomMade()
      if (isIn('draining')) void drain()
    }
    unanswered += results.length + renewals.length
    if (unanswered > maxUnanswered) throw new ServiceError('RateLimited', { retryAfter: 1 })
    if (results.length > 0) record(results).catch(finish)
    if (renewals.length > 0) renew(renewals).catch(finish)
  }

  async function drain() {
    while (isIn('draining') && room.taken() > sent.size) await delay(drainCheckMs)
    if (isIn('draining')) mode = 'drained'
    wake()
  }

  async function record(results: AttemptResultMessage[]) {
    for (const result of results) makeRoom(result)
    await Promise.all(
      results.map(async (message) => {
        const { deliveryId, claimId } = message
        const result = fromResult(message)
        const held = result !== undefined && (await addResult(core, result).catch(refuse))
        recorded.push({ deliveryId, claimId, held })
        // Nothing waits for these answers, so they travel with the next deliveries.
        answering ??= setTimeout(() => {
          isAnswerDue = true
          wake()
        }, answerWithinMs)
      }),
    )
  }

  function makeRoom(result: AttemptResultMessage) {
    const destination = sent.get(keyOf(result))
    if (destination === undefined || !sent.delete(keyOf(result))) return
    const { outcome, durationMs } = result
    if (room.free(destination, outcome.case === 'released' ? undefined : durationMs)) deliveryDispatch.roomMade()
  }

  async function renew(claims: HeldClaim[]) {
    const held = await renewClaims(core, claims)
    renewed.push(...claims.map(({ deliveryId, claimId }, index) => ({ deliveryId, claimId, held: held[index] })))
    wake()
  }

  async function read() {
    for await (const message of messages) handle(message)
  }

  signal.addEventListener('abort', () => finish(), { once: true })
  read().then(() => finish(), finish)
  try {
    yield create(WorkDeliveriesResponseSchema)
    while (!isIn('closed')) {
      if (unsent.length + renewed.length + recalled.size === 0 && !isIn('drained') && !isAnswerDue)
        await new Promise<void>((resolve) => (wake = resolve))
      if (isIn('closed')) break
      const deliveries = unsent.splice(0, countFittingBodies(unsent))
      const isLast = unsent.length === 0
      const drained = isLast && isIn('drained')
      const message = { deliveries, recorded, renewed, drained, recalled: [...recalled] }
      unanswered -= recorded.length + renewed.length
      recorded = []
      renewed = []
      clearTimeout(answering)
      answering = undefined
      isAnswerDue = false
      if (drained) mode = 'stopped'
      if (isLast) recalled.clear()
      yield create(WorkDeliveriesResponseSchema, message)
    }
    if (failure !== undefined) throw failure
  } finally {
    finish()
    clearTimeout(answering)
    release(unsent)
  }
}

const keyOf = ({ deliveryId, claimId }: { deliveryId: string; claimId: string }) => `${deliveryId} ${claimId}`

/** Answers an invalid result like a late one, so that it does not block the others. */
function refuse(error: unknown) {
  if (error instanceof ServiceError && error.code === 'ValidationFailed') return false
  throw error
}

/** Returns undefined if the message has no outcome. */
export function fromResult(message: AttemptResultMessage): AttemptResult | undefined {
  const { deliveryId, attemptId, claimId, durationMs, attemptNumber, destination, outcome } = message
  const facts = fromOutcome(outcome)
  const claimed = attemptNumber > 0 && destination !== '' ? { attemptNumber, subscriptionId: destination } : undefined
  return facts && { deliveryId, attemptId, claimId, durationMs, facts, claimed }
}

function fromOutcome(outcome: AttemptResultMessage['outcome']): AttemptFacts | 'released' | undefined {
  switch (outcome.case) {
    case 'released':
      return 'released'
    case 'response': {
      const { status, retryAfterMs, text } = outcome.value
      const answer = { status, retryAfterMs: retryAfterMs === undefined ? undefined : Number(retryAfterMs) }
      return text === '' ? answer : { ...answer, text }
    }
    case 'failure': {
      const reason = nameOf(FailureReason, outcome.value.reason)
      const phase = nameOf(AttemptPhase, outcome.value.phase)
      return reason && { reason, phase }
    }
    default:
      return undefined
  }
}
