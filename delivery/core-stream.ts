import { setTimeout as delay } from 'node:timers/promises'
import type { MessageInitShape } from '@bufbuild/protobuf'
import { ConnectError, createClient } from '@connectrpc/connect'
import type { Logger } from 'pino'
import type {
  AttemptResultSchema,
  HeldClaimSchema,
  WorkDeliveriesRequestSchema,
  WorkDeliveriesResponse,
  WorkerRoomSchema,
} from '#proto/lead/v1/delivery_pb.js'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { createAuthorizedTransport } from '../core-client/authorized-transport.ts'
import type { CoreNode } from '../core-client/core-pool.ts'
import { tokenFault } from '../core-client/service-token.ts'
import { tlsFaultOf } from '../core-client/system-codes.ts'
import { createBackoff } from '../platform/concurrency/backoff.ts'
import type { DeliveryConfig } from './config.ts'

export interface Worker {
  config: DeliveryConfig
  /** Names the worker in claims. */
  workerId: string
  logger: Logger
  /** Pause after the first failed call, in milliseconds. */
  retryMs: number
}

export type AttemptReport = MessageInitShape<typeof AttemptResultSchema>
type Renewal = MessageInitShape<typeof HeldClaimSchema>
type Part = {
  room?: MessageInitShape<typeof WorkerRoomSchema>
  results?: AttemptReport[]
  renewals?: Renewal[]
}

export type CoreStream = ReturnType<typeof createCoreStream>

/** Minimum time between two messages: one with many results costs a tenth of many messages. */
const sendEveryMs = 10
const batchMax = 1_000
/** A stream that was open for this time has recovered, so the next pause is short again. */
const stableMs = 1_000

/** `onEnd` says that the call has ended. Its unanswered results must be sent again. */
export function createCoreStream(
  { config, workerId, retryMs, logger }: Worker,
  core: CoreNode,
  events: { onOpen(): void; onMessage(message: WorkDeliveriesResponse): void; onEnd(): void },
) {
  const token = config.DELIVERY_TOKEN
  const leads = createClient(LeadService, createAuthorizedTransport(core.transport, token))
  const backoff = createBackoff({ minMs: retryMs, maxMs: 5_000 })
  const ending = new AbortController()
  let outbox: ReturnType<typeof createOutbox> | undefined
  let isOpen = false

  async function connect() {
    const call = new AbortController()
    const accepting = setTimeout(() => call.abort(), config.CORE_DEADLINE_MS)
    let openedAt = Number.POSITIVE_INFINITY
    outbox = createOutbox(workerId)
    if (ending.signal.aborted) outbox.end()
    let reason = 'the core ended the call'
    try {
      for await (const message of leads.workDeliveries(outbox.messages(), { signal: call.signal })) {
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
      reason = tokenFault('DELIVERY_TOKEN', token, 'deliveries:work', code) ?? tlsFaultOf(error) ?? rawMessage
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

  async function run() {
    while (!ending.signal.aborted) await connect()
  }
  const running = run()

  return {
    isOpen: () => isOpen && !ending.signal.aborted,
    /** Sends a part, together with others. What was not sent is lost when the stream ends. */
    send: (part: Part) => outbox?.add(part),
    /** Sends all parts and ends the call. Does not connect again. */
    async end() {
      ending.abort()
      outbox?.end()
      await running
    },
  }
}

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
