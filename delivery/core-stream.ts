import { setTimeout as delay } from 'node:timers/promises'
import type { MessageInitShape } from '@bufbuild/protobuf'
import { type Client, type Code, ConnectError } from '@connectrpc/connect'
import type { Logger } from 'pino'
import type {
  AttemptResultSchema,
  HeldClaimSchema,
  WorkDeliveriesRequestSchema,
  WorkDeliveriesResponse,
  WorkerRoomSchema,
} from '#proto/lead/v1/delivery_pb.js'
import type { LeadService } from '#proto/lead/v1/lead_pb.js'
import { createBackoff } from '../platform/concurrency/backoff.ts'

/** The result of an attempt, as the worker sends it to a core. */
export type AttemptReport = MessageInitShape<typeof AttemptResultSchema>
type Renewal = MessageInitShape<typeof HeldClaimSchema>
type Part = {
  room?: MessageInitShape<typeof WorkerRoomSchema> | undefined
  results?: AttemptReport[]
  renewals?: Renewal[]
}
export type StreamCalls = Pick<Client<typeof LeadService>, 'workDeliveries'>

/** The `WorkDeliveries` call of this worker to one core. Connects again with backoff. */
export interface CoreStream {
  /** Whether the core has accepted the call. */
  isOpen(): boolean
  /** Sends a part, together with others. Parts that were not sent are lost when the stream ends. */
  send(part: Part): void
  /** Sends all parts and ends the call. Does not connect again. */
  end(): Promise<void>
}

interface StreamEvents {
  onOpen(): void
  onMessage(message: WorkDeliveriesResponse): void
  /** The call has ended. Its unanswered results must be sent again. */
  onEnd(): void
}

/**
 * Minimum time between two messages in milliseconds. A message with many results costs a tenth of
 * many messages. A message after a pause is sent at once.
 */
const sendEveryMs = 10
/** Maximum number of results, and of renewals, in one message. */
const batchMax = 1_000
const retryMaxMs = 5_000
/** A stream that was open for this time has recovered, so the next pause is short again. */
const stableMs = 1_000

export function createCoreStream(options: {
  calls: StreamCalls
  workerId: string
  /** Time in which the core must accept the call. */
  acceptWithinMs: number
  /** First pause after a failure in milliseconds. */
  retryMs: number
  events: StreamEvents
  /** Returns why the core refuses the token; undefined for codes of other failures. */
  tokenFault?: ((code: Code) => string | undefined) | undefined
  logger: Logger
}): CoreStream {
  const { calls, workerId, acceptWithinMs, retryMs, events, tokenFault, logger } = options
  const backoff = createBackoff({ minMs: retryMs, maxMs: retryMaxMs })
  const ending = new AbortController()
  let outbox: Outbox | undefined
  let isOpen = false

  async function connect(): Promise<void> {
    const call = new AbortController()
    const accepting = setTimeout(() => call.abort(), acceptWithinMs)
    let openedAt = Number.POSITIVE_INFINITY
    outbox = createOutbox(workerId)
    if (ending.signal.aborted) outbox.end()
    let reason = 'the core ended the call'
    try {
      for await (const message of calls.workDeliveries(outbox.messages(), { signal: call.signal })) {
        if (!isOpen) {
          clearTimeout(accepting)
          openedAt = performance.now()
          isOpen = true
          events.onOpen()
        }
        events.onMessage(message)
      }
    } catch (error) {
      const { code, rawMessage } = ConnectError.from(error)
      reason = tokenFault?.(code) ?? rawMessage
    }
    clearTimeout(accepting)
    outbox.end()
    if (ending.signal.aborted) return
    if (performance.now() - openedAt >= stableMs) backoff.reset()
    if (isOpen || backoff.failures() === 0) logger.warn({ reason }, 'stream to a core ended; connecting again')
    isOpen = false
    events.onEnd()
    await backoff.pause(ending.signal)
  }

  async function run(): Promise<void> {
    while (!ending.signal.aborted) await connect()
  }
  const running = run()

  return {
    isOpen: () => isOpen && !ending.signal.aborted,
    send: (part) => outbox?.add(part),
    async end() {
      ending.abort()
      outbox?.end()
      await running
    },
  }
}

type Outbox = ReturnType<typeof createOutbox>

/** The parts that were not sent yet. */
function createOutbox(workerId: string) {
  const results: AttemptReport[] = []
  const renewals: Renewal[] = []
  let room: Part['room']
  let isEmpty = true
  let isOver = false
  let wake = () => {}

  return {
    add(part: Part) {
      room = part.room ?? room
      results.push(...(part.results ?? []))
      renewals.push(...(part.renewals ?? []))
      isEmpty = false
      wake()
    },
    end() {
      isOver = true
      wake()
    },
    async *messages(): AsyncGenerator<MessageInitShape<typeof WorkDeliveriesRequestSchema>> {
      yield { workerId }
      for (let sentAt = Number.NEGATIVE_INFINITY; ; ) {
        if (isEmpty && !isOver) await new Promise<void>((resolve) => (wake = resolve))
        const pauseMs = sentAt + sendEveryMs - performance.now()
        if (pauseMs > 0 && !isOver) await delay(pauseMs)
        if (isEmpty) return
        sentAt = performance.now()
        const message = { room, results: results.splice(0, batchMax), renewals: renewals.splice(0, batchMax) }
        room = undefined
        isEmpty = results.length + renewals.length === 0
        yield message
      }
    },
  }
}
