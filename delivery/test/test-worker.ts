import { Code, ConnectError, createRouterTransport, type Transport } from '@connectrpc/connect'
import { pino } from 'pino'
import { onTestFinished } from 'vitest'
import type { AttemptResult, HeldClaim, WorkDeliveriesRequest, WorkerRoom } from '#proto/lead/v1/delivery_pb.js'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { type CoreNode, createCorePool } from '../../core-client/core-pool.ts'
import { readDeliveryConfig } from '../config.ts'
import type { Outcome, Sender } from '../sender.ts'
import { createDelivery } from '../worker.ts'

const logger = pino({ level: 'silent' })
const accepted: Outcome = { case: 'response', value: { status: 200 } }

type Due = { deliveryId: string; destination: string; url?: string }

/** An in-memory core that sends due deliveries over streams. The test controls its state. */
export function createTestCore() {
  const wakes = new Set<() => void>()
  const core = {
    due: [] as Due[],
    /** Rooms that workers have sent. */
    rooms: [] as WorkerRoom[],
    /** Results by message. */
    records: [] as AttemptResult[][],
    recorded: new Map<string, AttemptResult>(),
    /** Renewals by message. */
    renewals: [] as HeldClaim[][],
    /** Destinations to recall. */
    recalled: [] as string[],
    isDown: false,
    /** If true, the core sends more deliveries than the worker has room for. */
    ignoresRoom: false,
    /** Runs before results are recorded. If it throws, the stream ends with this error. */
    onResults: async (_results: AttemptResult[]): Promise<void> => {},
    /** Ids of deliveries that another worker has claimed. */
    lost: new Set<string>(),
    leaseMs: 60_000,
    add(...more: Due[]) {
      core.due.push(...more)
      core.wake()
    },
    recall(...destinations: string[]) {
      core.recalled.push(...destinations)
      core.wake()
    },
    wake() {
      for (const wake of wakes) wake()
    },
    /** Ends all streams and refuses new ones until `isDown` is false again. */
    stop() {
      core.isDown = true
      core.wake()
    },
  }

  function take(room: WorkerRoom, taken: Map<string, string>) {
    const given = core.due.filter(({ deliveryId, destination }) => {
      const same = [...taken.values()].filter((name) => name === destination).length
      if (!core.ignoresRoom && (taken.size >= room.limit || same >= room.perDestination)) return false
      taken.set(deliveryId, destination)
      return true
    })
    core.due = core.due.filter((each) => !given.includes(each))
    return given.map((delivery) => ({
      attemptId: `att_${delivery.deliveryId}`,
      claimId: 'clm_1',
      url: 'http://crm.example/',
      body: new Uint8Array(2),
      deadlineMs: 1_000,
      leaseMs: core.leaseMs,
      ...delivery,
    }))
  }

  async function* serve(messages: AsyncIterable<WorkDeliveriesRequest>, signal: AbortSignal) {
    if (core.isDown) throw new ConnectError('gone', Code.Unavailable)
    const taken = new Map<string, string>()
    let room = { limit: 0, perDestination: 0 } as WorkerRoom
    let answer = { recorded: [] as object[], renewed: [] as object[], drained: false }
    let isOver = false
    let failure: unknown
    let wake = () => {}

    async function read() {
      for await (const message of messages) {
        if (message.room) {
          core.rooms.push(message.room)
          room = message.room
          answer.drained = room.limit === 0
        }
        if (message.renewals.length > 0) core.renewals.push(message.renewals)
        answer.renewed.push(...message.renewals.map((each) => ({ ...each, held: !core.lost.has(each.deliveryId) })))
        void record(message.results).catch((error: unknown) => {
          failure = error
          wake()
        })
        wake()
      }
    }

    async function record(results: AttemptResult[]) {
      if (results.length === 0) return
      if (core.isDown) throw new ConnectError('gone', Code.Unavailable)
      await core.onResults(results)
      core.records.push(results)
      for (const result of results) {
        taken.delete(result.deliveryId)
        const isFirst = !core.recorded.has(result.attemptId)
        if (isFirst) core.recorded.set(result.attemptId, result)
        answer.recorded.push({ deliveryId: result.deliveryId, claimId: result.claimId, held: isFirst })
      }
      wake()
    }

    read().finally(() => {
      isOver = true
      wake()
    })
    signal.addEventListener('abort', () => wake())
    yield {}
    while (!isOver && !signal.aborted) {
      if (core.isDown) throw new ConnectError('gone', Code.Unavailable)
      if (failure) throw failure
      const message = { ...answer, deliveries: take(room, taken), recalled: core.recalled.splice(0) }
      answer = { recorded: [], renewed: [], drained: false }
      const { deliveries, recorded, renewed, recalled, drained } = message
      if (deliveries.length + recorded.length + renewed.length + recalled.length > 0 || drained) yield message
      else
        await new Promise<void>((resolve) => {
          wake = resolve
          wakes.add(resolve)
        })
    }
  }

  const transport = createRouterTransport(({ service }) => {
    service(LeadService, { workDeliveries: (messages, { signal }) => serve(messages, signal) })
  })
  return { core, transport }
}

/** An in-memory network. Each destination answers immediately, or hangs until the test releases it. */
export function createTestSender() {
  const hanging = new Map<string, PromiseWithResolvers<void>>()
  const sending = new Map<string, number>()
  const most = new Map<string, number>()
  let running = 0
  let mostAtOnce = 0
  const sender: Sender = {
    async send({ url }, signal) {
      const at = (sending.get(url) ?? 0) + 1
      sending.set(url, at)
      most.set(url, Math.max(at, most.get(url) ?? 0))
      mostAtOnce = Math.max(mostAtOnce, ++running)
      const stopped = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      await Promise.race([hanging.get(url)?.promise ?? new Promise(setImmediate), stopped])
      sending.set(url, (sending.get(url) ?? 0) - 1)
      running--
      return signal.aborted ? { case: 'released', value: {} } : accepted
    },
    idleConnections: () => 0,
    close: async () => {},
  }
  return {
    sender,
    hang: (url: string) => void hanging.set(url, Promise.withResolvers()),
    release(url: string) {
      hanging.get(url)?.resolve()
      hanging.delete(url)
    },
    sending: (url: string) => sending.get(url) ?? 0,
    most: (url: string) => most.get(url) ?? 0,
    mostAtOnce: () => mostAtOnce,
  }
}

export const nodeOf = (transport: Transport, index = 0): CoreNode => ({
  url: `http://core-${index}`,
  transport,
  request: () => Promise.reject(new Error('not used')),
})

/** Starts a worker with streams to these cores. It stops at the end of the test. */
export function startWorker(options: {
  cores: Transport[]
  pool?: ReturnType<typeof createCorePool>
  sender: Sender
  token?: string
  concurrency?: number
  perDestination?: number
  graceMs?: number
}) {
  const {
    cores,
    pool = createCorePool({ cores: cores.map(nodeOf) }),
    sender,
    token = 'service-token-of-tests',
  } = options
  const { concurrency = 20, perDestination = 5, graceMs = 10_000 } = options
  const config = readDeliveryConfig({
    DELIVERY_TOKEN: token,
    CORE_DEADLINE_MS: '10000',
    DELIVERY_CONCURRENCY: String(concurrency),
    DELIVERY_PER_DESTINATION: String(perDestination),
    DELIVERY_GRACE_MS: String(graceMs),
  })
  const worker = createDelivery({ config, cores: pool, logger, sender, retryMs: 1 })
  onTestFinished(() => worker.stop())
  worker.start()
  return worker
}

export const deliveries = (destination: string, number: number): Due[] =>
  Array.from({ length: number }, (_, index) => ({
    deliveryId: `dlv_${destination}_${index}`,
    destination,
    url: destination,
  }))
