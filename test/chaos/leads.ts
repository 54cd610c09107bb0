import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { Db } from 'mongodb'
import type { ClaimedDelivery } from '#proto/lead/v1/delivery_pb.js'
import type { DeliveryDocument } from '../../core/deliveries/model.ts'
import { operatorOf } from '../support/operator.ts'
import type { Receiver } from '../support/receiver.ts'
import { type ClientContext, callTimeoutMs } from './client-context.ts'

const destinations = 2
/** Maximum duration in milliseconds of a worker's stream, which takes one delivery. */
const streamTimeoutMs = 20_000

/** Creates a workspace with lead subscriptions that send every lead automatically. */
export async function prepareLeads({ service, recorder, random }: ClientContext, receiver: Receiver): Promise<string> {
  const { workspaces, leads } = operatorOf(service.cores[0]!.url, service.demo.serviceToken)
  const { workspace } = await workspaces.createWorkspace({ name: 'Chaos' })
  const { workspaceId } = workspace!
  for (let index = 0; index < destinations; index += 1) {
    const path = `/chaos?${index}`
    receiver.on(path, async ({ headers }, response) => {
      const { data } = JSON.parse(receiver.requests.pop()!.body.toString())
      recorder.add({ kind: 'delivery', deliveryId: String(headers['webhook-id']), leadId: data.reference })
      await delay(random.between(0, 200))
      response.writeHead(200).end()
    })
    const destinationUrl = `${receiver.http}${path}`
    await leads.createSubscription({ workspaceId, destinationUrl, mappedFields: ['email'], automatic: true })
  }
  return workspaceId
}

/** Captures leads through random cores until the run stops. */
export async function captureLeads(
  { service, recorder, random, draining }: ClientContext,
  workspaceId: string,
): Promise<void> {
  const operators = service.cores.map(({ url }) => operatorOf(url, service.demo.serviceToken))
  for (let count = 1; !draining.aborted; count += 1) {
    // A capture that returned an error may still have stored the lead. This lead must be delivered, too.
    const captured = await random
      .pick(operators)
      .leads.captureLead(
        { workspaceId, source: 'chaos', fields: { email: `${count}@example.com` } },
        { timeoutMs: callTimeoutMs },
      )
      .catch(() => undefined)
    if (captured) recorder.add({ kind: 'lead', leadId: captured.leadId })
    await delay(random.between(20, 150))
  }
}

/**
 * Acts as a worker that claims a delivery, waits until the claim is lost, and then reports a
 * result. The late result must have no effect.
 */
export async function reportTooLate({ service, recorder, random, draining }: ClientContext, db: Db): Promise<void> {
  const deliveries = db.collection<DeliveryDocument>('deliveries')
  const workers = service.cores.map(({ url }) => operatorOf(url, service.deliveryToken).leads)
  const options = { timeoutMs: callTimeoutMs }

  async function claimAndReportLate() {
    const leaving = new AbortController()
    const signal = AbortSignal.any([draining, leaving.signal])
    const taken = Promise.withResolvers<void>()
    const input = roomForSome(taken.promise, signal)
    const stream = random.pick(workers).workDeliveries(input, { signal, timeoutMs: streamTimeoutMs })
    try {
      for await (const { deliveries } of stream) {
        const [delivery] = deliveries
        if (!delivery) continue
        taken.resolve()
        return await reportLate(delivery)
      }
    } finally {
      leaving.abort()
    }
  }

  async function reportLate({ deliveryId, attemptId, claimId }: ClaimedDelivery) {
    while (!(await isClaimLost(deliveryId, attemptId, claimId))) {
      if (draining.aborted) return
      await delay(50)
    }
    recorder.add({ kind: 'claim lost', deliveryId, claimId })
    const outcome = { case: 'response' as const, value: { status: 200 } }
    const result = { deliveryId, attemptId, claimId, durationMs: 1, outcome }
    const late = new AbortController()
    async function* report() {
      yield { workerId: 'late', room: { limit: 0, perDestination: 1 }, results: [result] }
      await once(late.signal, 'abort')
    }
    try {
      for await (const { recorded } of random
        .pick(workers)
        .workDeliveries(report(), { ...options, signal: late.signal })) {
        const [state] = recorded
        if (!state) continue
        recorder.add({ kind: 'late result', claimId, counted: state.held })
        return
      }
    } finally {
      late.abort()
    }
  }

  async function isClaimLost(deliveryId: string, attemptId: string, claimId: string): Promise<boolean> {
    const found = await deliveries.findOne({ _id: deliveryId }, { projection: { claim: 1, attempts: 1 } })
    const outcome = found?.attempts.find((attempt) => attempt.attemptId === attemptId)?.outcome
    const holder = found?.claim?.claimId ?? outcome?.claimId
    return holder !== undefined && holder !== claimId
  }

  while (!draining.aborted) {
    await service.undisturbed(claimAndReportLate).catch(() => {})
    await delay(random.between(50, 500))
  }
}

/**
 * Yields the messages of a worker that first has more room than all others. Once the worker has a
 * delivery, it reports that it has no more room. It then sends nothing until `signal` aborts.
 */
async function* roomForSome(taken: Promise<void>, signal: AbortSignal) {
  const over = once(signal, 'abort')
  yield { workerId: 'sleeper', room: { limit: 20_000, perDestination: 1_000 } }
  await Promise.race([taken, over])
  yield { room: { limit: 0, perDestination: 1 } }
  await over
}
