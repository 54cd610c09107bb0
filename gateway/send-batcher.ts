import { randomUUID } from 'node:crypto'
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { AcceptedMessage, VisitorMessageResult, VisitorMessageSchema } from '#proto/messaging/v1/messaging_pb.js'
import { activeContext, batchOrigin, type Context, inSpan } from '../platform/observability/tracing.ts'
import type { CoreClients } from './core/core-clients.ts'
import { errorFromInfo, toGatewayError, unavailable } from './errors.ts'
import type { GatewayMetrics } from './metrics.ts'

type VisitorMessage = MessageInitShape<typeof VisitorMessageSchema>

/** Sends messages of visitors to the cores in batches. */
export interface SendBatcher {
  /** @throws GatewayError */
  send(message: VisitorMessage): Promise<AcceptedMessage>
}

interface QueuedSend {
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
 * Batches concurrent sends without a timer: messages that arrive while calls are in flight form the
 * next batch.
 *
 * - If a call fails, each of its messages fails with a retryable `ServiceUnavailable`. The outcome is
 *   unknown, and the operation id makes a retry safe.
 * - If the queue is full, a send fails at once with the same error.
 * - A send that waits longer than `waitMaxMs` fails with it too. Otherwise the queue would grow while
 *   calls run into their deadlines.
 */
export function createSendBatcher(options: {
  core: CoreClients
  rpcsMax: number
  queueMax: number
  waitMaxMs: number
  now: () => number
  metrics: GatewayMetrics
}): SendBatcher {
  const { sendBatchSize, sendQueueLength } = options.metrics
  let queue: QueuedSend[] = []
  let inFlight = 0

  function dispatch(): void {
    rejectExpired()
    while (inFlight < options.rpcsMax && queue.length > 0) {
      const size = batchSize(queue)
      const batch = queue.slice(0, size)
      queue = queue.slice(size)
      sendQueueLength.set(queue.length)
      sendBatchSize.observe(size)
      inFlight++
      sendBatch(batch).finally(() => {
        inFlight--
        dispatch()
      })
    }
  }

  /** Rejects sends that waited too long. The queue is in order of arrival. */
  function rejectExpired(): void {
    const oldestAllowed = options.now() - options.waitMaxMs
    const firstInTime = queue.findIndex(({ since }) => since > oldestAllowed)
    for (const { refuse } of queue.splice(0, firstInTime < 0 ? queue.length : firstInTime)) refuse(unavailable())
    sendQueueLength.set(queue.length)
  }

  async function sendBatch(batch: QueuedSend[]): Promise<void> {
    try {
      // The batch serves several requests, so it gets its own correlation id.
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
        // Batches the requests of one turn of the event loop.
        if (queue.length === 1) setImmediate(dispatch)
      })
    },
  }
}

function settle({ accept, refuse }: QueuedSend, result: VisitorMessageResult | undefined): void {
  if (result?.outcome.case === 'accepted') accept(result.outcome.value)
  else if (result?.outcome.case === 'error') refuse(errorFromInfo(result.outcome.value))
  else refuse(unavailable())
}

/** Returns how many queued sends fit into one call. */
function batchSize(queue: QueuedSend[]): number {
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
