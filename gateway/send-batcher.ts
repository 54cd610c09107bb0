import { randomUUID } from 'node:crypto'
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { AcceptedMessage, VisitorMessageResult, VisitorMessageSchema } from '#proto/messaging/v1/messaging_pb.js'
import { activeContext, batchOrigin, type Context, inSpan } from '../platform/observability/tracing.ts'
import type { Core } from './core/core.ts'
import { errorFromInfo, toGatewayError, unavailable } from './errors.ts'
import type { GatewayMetrics } from './metrics.ts'

type VisitorMessage = MessageInitShape<typeof VisitorMessageSchema>

/** Sends visitors' messages, those that come at the same time together. */
export interface SendBatcher {
  /** @throws GatewayError */
  send(message: VisitorMessage): Promise<AcceptedMessage>
}

interface Waiting {
  message: VisitorMessage
  since: number
  origin: Context
  accept: (message: AcceptedMessage) => void
  refuse: (error: Error) => void
}

const BATCH_MAX_MESSAGES = 512
const BATCH_MAX_BYTES = 1024 * 1024
const FIXED_BYTES = 1024
const UNIT_MAX_BYTES = 3

/**
 * Groups concurrent sends into shared calls, without a timer: whatever arrived while the calls before were in flight is
 * the next one. A failed call fails each of its messages with a retryable `ServiceUnavailable`, since the outcome is
 * unknown and the operation id makes a repeat safe; so does a full queue, at once, and the wait for a turn that lasts
 * `waitMaxMs`: behind calls that fail only at their deadlines a queue would be far longer than anybody waits.
 */
export function createSendBatcher(options: {
  core: Core
  rpcsMax: number
  queueMax: number
  waitMaxMs: number
  now: () => number
  metrics: GatewayMetrics
}): SendBatcher {
  const { sendBatchSize, sendQueueLength } = options.metrics
  let queue: Waiting[] = []
  let inFlight = 0

  function dispatch(): void {
    refuseLate()
    while (inFlight < options.rpcsMax && queue.length > 0) {
      const size = batchSize(queue)
      const batch = queue.slice(0, size)
      queue = queue.slice(size)
      sendQueueLength.set(queue.length)
      sendBatchSize.observe(size)
      inFlight++
      deliver(batch).finally(() => {
        inFlight--
        dispatch()
      })
    }
  }

  /** The queue is in the order of arrival. */
  function refuseLate(): void {
    const begin = options.now() - options.waitMaxMs
    const late = queue.findIndex(({ since }) => since > begin)
    for (const { refuse } of queue.splice(0, late < 0 ? queue.length : late)) refuse(unavailable())
    sendQueueLength.set(queue.length)
  }

  async function deliver(batch: Waiting[]): Promise<void> {
    try {
      // The call is nobody's alone, so it has a correlation of its own.
      const headers = { 'x-correlation-id': randomUUID() }
      const messages = batch.map(({ message }) => message)
      const { results } = await inSpan(
        'send batch',
        { ...batchOrigin(batch.map(({ origin }) => origin)), attributes: { 'service.batch.size': batch.length } },
        () => options.core.sends.sendVisitorMessages({ messages }, { headers }),
      )
      for (const [index, waiting] of batch.entries()) settle(waiting, results[index])
    } catch (error) {
      for (const { refuse } of batch) refuse(unavailable(toGatewayError(error)))
    }
  }

  return {
    send(message) {
      if (queue.length >= options.queueMax) return Promise.reject(unavailable())
      return new Promise((accept, refuse) => {
        queue.push({ message, since: options.now(), origin: activeContext(), accept, refuse })
        sendQueueLength.set(queue.length)
        // Requests of the same turn of the event loop go together.
        if (queue.length === 1) setImmediate(dispatch)
      })
    },
  }
}

function settle({ accept, refuse }: Waiting, result: VisitorMessageResult | undefined): void {
  if (result?.outcome.case === 'accepted') accept(result.outcome.value)
  else if (result?.outcome.case === 'error') refuse(errorFromInfo(result.outcome.value))
  else refuse(unavailable())
}

/** How many of the waiting sends fit one call. */
function batchSize(queue: Waiting[]): number {
  let bytes = 0
  let size = 0
  for (const { message } of queue) {
    const { body = '', locale = '', pageContext: { url = '', title = '', referrer = '' } = {} } = message
    bytes += FIXED_BYTES + UNIT_MAX_BYTES * (body + locale + url + title + referrer).length
    if (size > 0 && (size === BATCH_MAX_MESSAGES || bytes > BATCH_MAX_BYTES)) break
    size++
  }
  return size
}
