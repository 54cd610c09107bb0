import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { clientNetwork } from '../../platform/addresses/client-network.ts'
import { createSlots, NoSlotError, type Slot } from '../../platform/concurrency/slots.ts'
import { GatewayError, unavailable } from '../errors.ts'
import { type Gateway, perGateway } from '../gateway.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    readsPages?: boolean
  }
  interface FastifyRequest {
    readSlot: Slot | null
  }
}

/** Reads that a core answers at once. A send waits for their work, and more would not be answered sooner. */
const READS_MAX = 8
const PER_SESSION = { max: 2, waitingMax: 120 }
const PER_ADDRESS = { max: 4, waitingMax: 500 }
const WAITING_MAX = 5_000
/** Open streams per session. Each change of an inbox goes to all of them. */
const OPERATOR_STREAMS_MAX = 30
/** How long an answer that is not read counts for its session and address. */
const UNREAD_MS = 1_000

/** Limits reads and streams of operators, because one read can cost as much as thousands of sends. */
const readSlotsOf = perGateway(({ config, clock }) =>
  createSlots({
    max: READS_MAX,
    waitingMax: WAITING_MAX,
    waitMaxMs: config.CORE_DEADLINE_MS,
    after: clock.after,
  }),
)
const streamSlotsOf = perGateway(() => createSlots({ max: Number.POSITIVE_INFINITY, waitingMax: 0 }))

export function endReads(app: FastifyInstance) {
  app.decorateRequest('readSlot', null)
  app.addHook('onSend', (request, reply, payload, done) => {
    if (request.readSlot !== null) endWhenRead(request.readSlot, reply)
    done(null, payload)
  })
}

/** The core has answered, so the next read may begin. Sessions wait until the answer was read. */
function endWhenRead(slot: Slot, reply: FastifyReply) {
  slot.release()
  if (reply.raw.destroyed) {
    slot.leave()
    return
  }
  const cancel = reply.server.gateway.clock.after(UNREAD_MS, slot.leave)
  reply.raw.once('close', () => {
    cancel()
    slot.leave()
  })
}

/** Waits until the read may begin. Rejects with `RateLimited` or `ServiceUnavailable`. */
export async function enterRead(request: FastifyRequest, reply: FastifyReply, session: string) {
  const { gateway } = request.server
  const groups = [
    { key: `session ${session}`, ...PER_SESSION },
    { key: `address ${clientNetwork(request.ip)}`, ...PER_ADDRESS },
  ]
  const disconnected = new AbortController()
  const onClose = () => disconnected.abort(unavailable())
  reply.raw.once('close', onClose)
  try {
    request.readSlot = await readSlotsOf(gateway).enter(groups, disconnected.signal)
  } catch (error) {
    throw refusalOf(gateway, error, 'reads')
  } finally {
    reply.raw.off('close', onClose)
  }
}

/** Counts a stream until it is closed. Rejects with `RateLimited` if the session has too many. */
export async function enterStream(reply: FastifyReply, session: string) {
  const { gateway } = reply.server
  const group = { key: session, max: OPERATOR_STREAMS_MAX, waitingMax: 0 }
  const entered = streamSlotsOf(gateway).enter([group])
  const slot = await entered.catch((error) => Promise.reject(refusalOf(gateway, error, 'streams')))
  if (reply.raw.destroyed) slot.leave()
  else reply.raw.once('close', slot.leave)
}

function refusalOf({ metrics }: Gateway, error: unknown, limit: string) {
  if (!(error instanceof NoSlotError)) return error
  if (!error.isGroupFull) return unavailable(error)
  metrics.rateLimited.inc({ limit })
  return new GatewayError('RateLimited', { retryAfter: 1 })
}
