import { randomUUID } from 'node:crypto'
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { AcceptedMessage, VisitorMessageResult, VisitorMessageSchema } from '#proto/messaging/v1/messaging_pb.js'
import { createBatcher } from '../../platform/concurrency/batcher.ts'
import { activeContext, batchOrigin, type Context, inSpan } from '../../platform/observability/tracing.ts'
import { errorFromInfo, toGatewayError, unavailable } from '../errors.ts'
import { type Gateway, perGateway } from '../gateway.ts'
import { coreOf } from './core-clients.ts'

type VisitorMessage = MessageInitShape<typeof VisitorMessageSchema>

interface QueuedSend {
  message: VisitorMessage
  since: number
  origin: Context
}

const BATCH_MAX_MESSAGES = 512
const BATCH_MAX_BYTES = 1024 * 1024
const FIXED_BYTES = 1024
const UNIT_MAX_BYTES = 3

const batcherOf = perGateway((gateway) => {
  const { config, clock, metrics } = gateway
  let lastSize = 0
  /** Sends a batch without the sends that waited too long. They are the first ones, in order of arrival. */
  async function sendAll(sends: QueuedSend[]): Promise<PromiseSettledResult<AcceptedMessage>[]> {
    const inTime = sends.filter(({ since }) => clock.now() - since < config.CORE_DEADLINE_MS)
    const results = inTime.length > 0 ? await callCore(inTime) : []
    const expired = sends.length - inTime.length
    return sends.map((_, index) => toOutcome(results[index - expired]))
  }

  async function callCore(sends: QueuedSend[]) {
    lastSize = sends.length
    metrics.sendBatchSize.observe(lastSize)
    // The batch serves several requests, so it gets its own correlation id.
    const headers = { 'x-correlation-id': randomUUID() }
    const messages = sends.map(({ message }) => message)
    const span = {
      ...batchOrigin(sends.map(({ origin }) => origin)),
      attributes: { 'service.batch.size': sends.length },
    }
    try {
      const call = () => coreOf(gateway).sends.sendVisitorMessages({ messages }, { headers })
      return (await inSpan('send batch', span, call)).results
    } catch (error) {
      throw unavailable(toGatewayError(error))
    }
  }

  return createBatcher(sendAll, {
    sizeOf: batchSize,
    // A single send goes at once. Under load, the requests of one turn share a batch.
    defer: (start, inFlight) => (inFlight === 0 && lastSize <= 1 ? queueMicrotask(start) : setImmediate(start)),
    onWaiting: (waiting) => metrics.sendQueueLength.set(waiting),
  })
})

/**
 * Sends a visitor's message in a batch. Fails with a retryable `ServiceUnavailable` if the queue is full,
 * if the send waits longer than `CORE_DEADLINE_MS`, so that slow calls do not fill the queue, and if the
 * call fails. The outcome is then unknown, and the operation id makes a retry safe.
 */
export async function sendMessage(gateway: Gateway, message: VisitorMessage): Promise<AcceptedMessage> {
  const batcher = batcherOf(gateway)
  if (batcher.waiting() >= gateway.config.SEND_QUEUE_MAX) throw unavailable()
  return batcher.add({ message, since: gateway.clock.now(), origin: activeContext() })
}

function toOutcome(result: VisitorMessageResult | undefined): PromiseSettledResult<AcceptedMessage> {
  const outcome = result?.outcome
  if (outcome?.case === 'accepted') return { status: 'fulfilled', value: outcome.value }
  return { status: 'rejected', reason: outcome?.case === 'error' ? errorFromInfo(outcome.value) : unavailable() }
}

function batchSize(queue: readonly QueuedSend[]) {
  let bytes = 0
  let size = 0
  for (const { message } of queue) {
    // `FIXED_BYTES` has room for the credentials.
    const { credentials: _, ...content } = message
    bytes += FIXED_BYTES + UNIT_MAX_BYTES * unitsIn(content)
    if (size > 0 && (size === BATCH_MAX_MESSAGES || bytes > BATCH_MAX_BYTES)) break
    size++
  }
  return size
}

function unitsIn(value: unknown) {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 0
  let units = 0
  for (const each of Object.values(value)) units += unitsIn(each)
  return units
}
