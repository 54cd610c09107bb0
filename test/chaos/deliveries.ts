import { setTimeout as delay } from 'node:timers/promises'
import type { Db } from 'mongodb'
import type { DeliveryDocument } from '../../core/deliveries/model.ts'
import { startDeliveryWorker, type WorkerProcess } from '../support/delivery-worker.ts'
import { operatorOf } from '../support/operator.ts'
import type { Receiver } from '../support/receiver.ts'
import type { Stack } from '../support/stack.ts'
import { until } from '../support/until.ts'

export type Victim = 'worker' | 'core' | 'engine'

export interface ChaosOptions {
  stack: Stack
  /** Database in which the cores store their records. */
  records: Db
  receiver: Receiver
  destinations: number
  /** Number of captured leads. Each lead is delivered to every destination. */
  leads: number
  /** Pause between the captures of two leads, in milliseconds. */
  leadEveryMs: number
  /** Pause between the restart of a process and the next kill, in milliseconds. */
  killEveryMs: number
  /** Processes to kill, in this order and repeatedly, while leads are captured. */
  victims: Victim[]
  workers: number
  workerEnv: Record<string, string>
  /** Maximum response time of the destinations, in milliseconds. The minimum is half of it. */
  answerMs: number
  /** If set to n, every n-th request gets a 503, unless an earlier request of the same delivery got a 503. */
  failFirstOneIn?: number
}

export interface Kill {
  victim: Victim
  /** Time of the kill, in milliseconds since 1970. */
  at: number
  /**
   * Attempts that were in flight at the kill. After the kill of a worker, these are the attempts of
   * this worker; otherwise, the attempts of all workers.
   */
  inFlight: { deliveryId: string; correlationId: string }[]
  /**
   * Time when the last lease of the deliveries in `inFlight` ends, in milliseconds since 1970. 0 if
   * `inFlight` is empty.
   */
  leasesEnd: number
}

export interface ChaosResult {
  kills: Kill[]
  /** Leads whose capture was acknowledged. */
  acknowledged: string[]
  deliveries: DeliveryDocument[]
  requests: { at: number; deliveryId: string; correlationId: string }[]
  /** Number of requests that repeated an attempt which the receiver had already received. */
  doubles: number
  /**
   * Milliseconds from the kill of a worker to the second request of an attempt. There is one entry
   * per attempt that was in flight at the kill and was sent again.
   */
  takeovers: number[]
}

/** Captures leads and lets workers deliver them. Meanwhile kills processes with SIGKILL and restarts them. */
export async function deliverDuringKills(options: ChaosOptions): Promise<ChaosResult> {
  const { stack, records, receiver, destinations, leads, leadEveryMs, killEveryMs, victims } = options
  const deliveries = records.collection<DeliveryDocument>('deliveries')
  const requests = registerDestinations(options)
  const operators = stack.cores.map(({ url }) => operatorOf(url, stack.demo.serviceToken))
  const { workspace } = await operators[0]!.workspaces.createWorkspace({ name: 'Chaos' })
  const { workspaceId } = workspace!
  for (let index = 0; index < destinations; index += 1) {
    await operators[0]!.leads.createSubscription({
      workspaceId,
      destinationUrl: `${receiver.http}${pathOf(index)}`,
      mappedFields: ['email'],
      automatic: true,
    })
  }
  const workers = await Promise.all(
    Array.from({ length: options.workers }, () => startDeliveryWorker(stack, options.workerEnv)),
  )

  const acknowledged: string[] = []
  async function captureAll() {
    for (let turn = 0; acknowledged.length < leads; turn += 1) {
      // A capture that returned an error may still have stored the lead. This lead must be delivered, too.
      await operators[turn % operators.length]!.leads.captureLead(
        { workspaceId, source: 'chaos', fields: { email: `${turn}@example.com` } },
        { timeoutMs: 5000 },
      ).then(
        ({ leadId }) => acknowledged.push(leadId),
        () => {},
      )
      await delay(leadEveryMs)
    }
  }

  const kills: Kill[] = []
  const captured = new AbortController()
  async function killInTurn() {
    for (let turn = 0; ; turn += 1) {
      await delay(killEveryMs, undefined, { signal: captured.signal }).catch(() => {})
      if (captured.signal.aborted) return
      kills.push(await kill(victims[turn % victims.length]!, turn))
    }
  }

  async function kill(victim: Victim, turn: number): Promise<Kill> {
    if (victim === 'worker') {
      const worker = workers[turn % workers.length]!
      const workerId = worker.workerId()
      await worker.kill()
      const killed = await inFlight({ 'claim.workerId': workerId })
      await worker.start()
      return { victim, ...killed }
    }
    const before = await inFlight({})
    const at = Date.now()
    if (victim === 'core') await stack.cores[turn % stack.cores.length]!.killAndRestart()
    else process.kill(enginePid(stack), 'SIGKILL')
    return { victim, ...before, at }
  }

  async function inFlight(of: { 'claim.workerId'?: string }) {
    const at = Date.now()
    // Retries, because the database may be restarting.
    const found = await until('the records', () =>
      deliveries
        .find({ status: 'sending', ...of }, { projection: { dueAt: 1, attempts: 1 } })
        .toArray()
        .catch(() => undefined),
    )
    return {
      at,
      inFlight: found.map(({ _id, attempts }) => ({
        deliveryId: _id,
        correlationId: attempts.at(-1)?.correlationId ?? '',
      })),
      leasesEnd: Math.max(0, ...found.map(({ dueAt }) => dueAt?.getTime() ?? 0)),
    }
  }

  await Promise.all([killInTurn(), captureAll().finally(() => captured.abort())])
  await waitUntilDrained(
    () => deliveries.countDocuments({ workspaceId, status: { $in: ['accepted', 'failed', 'dead_lettered'] } }),
    async () => (await records.collection('leads').countDocuments({ workspaceId })) * destinations,
  )
  await Promise.all(workers.map((worker: WorkerProcess) => worker.process().stop()))

  const attempts = new Set(requests.map(({ correlationId }) => correlationId))
  return {
    kills,
    acknowledged,
    deliveries: await deliveries.find({ workspaceId }).toArray(),
    requests,
    doubles: requests.length - attempts.size,
    takeovers: takeoversOf(kills, requests),
  }
}

const pathOf = (index: number) => `/slow?${index}`

/** Registers slow destinations with the receiver, so that some attempts are always in flight. */
function registerDestinations({ receiver, destinations, answerMs, failFirstOneIn = 0 }: ChaosOptions) {
  const requests: ChaosResult['requests'] = []
  const failed = new Set<string>()
  let count = 0
  for (let index = 0; index < destinations; index += 1) {
    receiver.on(pathOf(index), async ({ headers }, response) => {
      const deliveryId = String(headers['webhook-id'])
      requests.push({ at: Date.now(), deliveryId, correlationId: String(headers['x-correlation-id']) })
      count += 1
      const isFailed = failFirstOneIn > 0 && count % failFirstOneIn === 0 && !failed.has(deliveryId)
      if (isFailed) failed.add(deliveryId)
      await delay(answerMs * (0.5 + 0.5 * Math.random()))
      response.writeHead(isFailed ? 503 : 200).end()
    })
  }
  return requests
}

export const inFlightAtKills = ({ kills }: ChaosResult): number =>
  kills.reduce((sum, { inFlight }) => sum + inFlight.length, 0)

/** Waits until all deliveries have ended. Fails only if too much time passes without progress. */
async function waitUntilDrained(done: () => Promise<number>, all: () => Promise<number>) {
  let before = -1
  for (;;) {
    const now = await until('progress of deliveries', async () => {
      const [count, total] = await Promise.all([done(), all()]).catch(() => [before, Number.NaN])
      return count === total || count! > before ? { count: count!, total: total! } : undefined
    })
    if (now.count === now.total) return
    before = now.count
  }
}

/** Process id of the embedded engine, from the log of the core that hosts it. */
function enginePid({ cores }: Stack): number {
  const started = cores.flatMap((core) => [
    ...core
      .process()
      .output()
      .matchAll(/"time":"([^"]+)".*"enginePid":(\d+)/g),
  ])
  const last = started.toSorted(([, a = ''], [, b = '']) => a.localeCompare(b)).at(-1)
  if (!last) throw new Error('no core has logged an engine process id')
  return Number(last[2])
}

function takeoversOf(kills: Kill[], requests: ChaosResult['requests']): number[] {
  const byAttempt = Map.groupBy(requests, ({ correlationId }) => correlationId)
  return kills
    .filter(({ victim }) => victim === 'worker')
    .flatMap(({ at, inFlight }) =>
      inFlight.flatMap(({ correlationId }) => {
        const again = byAttempt.get(correlationId)?.find((request) => request.at > at)
        return again ? [again.at - at] : []
      }),
    )
}
