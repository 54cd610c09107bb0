import { setTimeout as delay } from 'node:timers/promises'
import type { Db } from 'mongodb'
import type { DeliveryDocument } from '../../core/deliveries/delivery-store.ts'
import { startDeliveryWorker, type WorkerProcess } from '../support/delivery-worker.ts'
import { operatorOf } from '../support/operator.ts'
import type { Receiver } from '../support/receiver.ts'
import type { Stack } from '../support/stack.ts'
import { until } from '../support/until.ts'

export type Victim = 'worker' | 'core' | 'engine'

export interface ChaosOptions {
  stack: Stack
  /** The cores' records. */
  records: Db
  receiver: Receiver
  destinations: number
  /** Each goes to every destination. */
  leads: number
  /** Pause between two of them. */
  leadEveryMs: number
  /** Pause between a victim's start and the next kill. */
  killEveryMs: number
  /** In turn, again and again, while there is anything to deliver. */
  victims: Victim[]
  workers: number
  workerEnv: Record<string, string>
  /** Each answer takes from half of it to all of it. */
  answerMs: number
  /** One in so many is answered with 503 at first. */
  refuseFirst?: number
}

export interface Kill {
  victim: Victim
  /** Milliseconds since 1970, when it was gone. */
  at: number
  /** Attempts under its claims then; for a core or the engine, under anyone's. */
  inFlight: { deliveryId: string; correlationId: string }[]
  /** When the last of their leases ends. */
  leasesEnd: number
}

export interface ChaosResult {
  kills: Kill[]
  /** Leads whose capture was acknowledged. */
  acknowledged: string[]
  deliveries: DeliveryDocument[]
  requests: { at: number; deliveryId: string; correlationId: string }[]
  /** Requests beyond the first of the same attempt. */
  doubles: number
  /** For each attempt in flight at a worker's death that went out (again): how long after, in milliseconds. */
  takeovers: number[]
}

/** Kills parts with SIGKILL, again and again, while leads come in and go out, and starts them again. */
export async function deliverUnderFire(options: ChaosOptions): Promise<ChaosResult> {
  const { stack, records, receiver, destinations, leads, leadEveryMs, killEveryMs, victims } = options
  const deliveries = records.collection<DeliveryDocument>('deliveries')
  const requests = receive(options)
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
      // A capture that failed may have happened: then there is one lead more, which must arrive as well.
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
  const over = new AbortController()
  async function killInTurn() {
    for (let turn = 0; ; turn += 1) {
      await delay(killEveryMs, undefined, { signal: over.signal }).catch(() => {})
      if (over.signal.aborted) return
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
    // The database may have been killed just now.
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

  await Promise.all([killInTurn(), captureAll().finally(() => over.abort())])
  await drained(
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

/** Every destination takes a while to answer, so that there is always something in flight. */
function receive({ receiver, destinations, answerMs, refuseFirst = 0 }: ChaosOptions) {
  const requests: ChaosResult['requests'] = []
  const refused = new Set<string>()
  let count = 0
  for (let index = 0; index < destinations; index += 1) {
    receiver.on(pathOf(index), async ({ headers }, response) => {
      const deliveryId = String(headers['webhook-id'])
      requests.push({ at: Date.now(), deliveryId, correlationId: String(headers['x-correlation-id']) })
      count += 1
      const refuses = refuseFirst > 0 && count % refuseFirst === 0 && !refused.has(deliveryId)
      if (refuses) refused.add(deliveryId)
      await delay(answerMs * (0.5 + 0.5 * Math.random()))
      response.writeHead(refuses ? 503 : 200).end()
    })
  }
  return requests
}

export const inFlightAtKills = ({ kills }: ChaosResult): number =>
  kills.reduce((sum, { inFlight }) => sum + inFlight.length, 0)

/** There is no limit for all of it, only for standing still. */
async function drained(done: () => Promise<number>, all: () => Promise<number>) {
  let before = -1
  for (;;) {
    const now = await until('deliveries to go on', async () => {
      const [count, total] = await Promise.all([done(), all()]).catch(() => [before, Number.NaN])
      return count === total || count! > before ? { count: count!, total: total! } : undefined
    })
    if (now.count === now.total) return
    before = now.count
  }
}

/** The embedded engine of the stack, as whoever hosts it tells. */
function enginePid({ cores }: Stack): number {
  const started = cores.flatMap((core) => [
    ...core
      .process()
      .output()
      .matchAll(/"time":"([^"]+)".*"enginePid":(\d+)/g),
  ])
  const last = started.toSorted(([, a = ''], [, b = '']) => a.localeCompare(b)).at(-1)
  if (!last) throw new Error('no core has said that it hosts an engine')
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
