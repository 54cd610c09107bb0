import { Code, ConnectError, createClient, createRouterTransport } from '@connectrpc/connect'
import { pino } from 'pino'
import { onTestFinished } from 'vitest'
import type {
  AttemptResult,
  ClaimDeliveriesRequest,
  RecordAttemptsRequest,
  RenewClaimsRequest,
} from '#proto/lead/v1/delivery_pb.js'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import type { Outcome, Sender } from '../sender.ts'
import { createDeliveryWorker, type DeliveryWorker, type WorkerOptions } from '../worker.ts'

const logger = pino({ level: 'silent' })
const accepted: Outcome = { case: 'response', value: { status: 200 } }

type Due = { deliveryId: string; destination: string; url?: string }

/** An in-memory core that returns due deliveries. The test controls its state. */
export function createTestCore() {
  const core = {
    due: [] as Due[],
    claims: [] as ClaimDeliveriesRequest[],
    records: [] as AttemptResult[][],
    recorded: new Map<string, AttemptResult>(),
    down: false,
    /**
     * If true, claims return more deliveries than the limit per destination allows, as two
     * concurrent claims may do.
     */
    ignoresRoom: false,
    /** Runs before a report is answered. If it throws, the core answers with this error. */
    onRecord: async (_request: RecordAttemptsRequest): Promise<void> => {},
    renewals: [] as RenewClaimsRequest[],
    /** Ids of claims whose deliveries another worker has claimed. */
    lost: new Set<string>(),
    leaseMs: 60_000,
    wake: Promise.withResolvers<void>(),
    add(...more: Due[]) {
      core.due.push(...more)
      core.wake.resolve()
      core.wake = Promise.withResolvers()
    },
    inFlight: () => core.claims.length,
  }
  const refuseWhileDown = () => {
    if (core.down) throw new ConnectError('gone', Code.Unavailable)
  }

  function give(request: ClaimDeliveriesRequest) {
    const given = new Map(Object.entries(request.underWay))
    const out = core.due.filter(({ destination }) => {
      const number = given.get(destination) ?? 0
      const taken = [...given.values()].reduce((sum, each) => sum + each, 0)
      const before = Object.values(request.underWay).reduce((sum, each) => sum + each, 0)
      const room = request.perDestination + (request.ahead[destination] ?? 0)
      if ((number >= room && !core.ignoresRoom) || taken - before >= request.limit) return false
      given.set(destination, number + 1)
      return true
    })
    core.due = core.due.filter((delivery) => !out.includes(delivery))
    return out.map((delivery) => ({
      attemptId: `att_${delivery.deliveryId}`,
      claimId: 'clm_1',
      url: 'http://crm.example/',
      body: new Uint8Array(2),
      deadlineMs: 1_000,
      leaseMs: core.leaseMs,
      ...delivery,
    }))
  }

  const transport = createRouterTransport(({ service }) => {
    service(LeadService, {
      async claimDeliveries(request, { signal }) {
        refuseWhileDown()
        core.claims.push(request)
        let deliveries = request.onlyNew ? [] : give(request)
        const timeout = AbortSignal.timeout(request.waitMs)
        const ended = new Promise<void>((resolve) => {
          for (const end of [signal, timeout]) end.addEventListener('abort', () => resolve())
        })
        while (deliveries.length === 0 && !signal.aborted && !timeout.aborted && request.waitMs > 0) {
          await Promise.race([core.wake.promise, ended])
          deliveries = signal.aborted ? [] : give(request)
        }
        refuseWhileDown()
        return { deliveries }
      },
      async renewClaims(request) {
        refuseWhileDown()
        core.renewals.push(request)
        return { renewed: request.claims.map(({ deliveryId }) => ({ held: !core.lost.has(deliveryId) })) }
      },
      async recordAttempts(request) {
        refuseWhileDown()
        await core.onRecord(request)
        core.records.push(request.results)
        const counted = request.results.map((result) => {
          const first = !core.recorded.has(result.attemptId)
          if (first) core.recorded.set(result.attemptId, result)
          return { counted: first }
        })
        return { recorded: counted }
      },
    })
  })
  return { ...core, core, client: createClient(LeadService, transport) }
}

/**
 * An in-memory network. Each destination answers immediately, or hangs until the test releases it.
 */
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

/** Starts a worker. It stops at the end of the test. */
export function startWorker(options: Partial<WorkerOptions> & Pick<WorkerOptions, 'core' | 'sender'>): DeliveryWorker {
  const worker = createDeliveryWorker({
    workerId: 'test',
    followCores: () => {},
    concurrency: 20,
    perDestination: 5,
    waitMs: 10_000,
    graceMs: 10_000,
    answerWithinMs: 10_000,
    retryMs: 1,
    logger,
    ...options,
  })
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
