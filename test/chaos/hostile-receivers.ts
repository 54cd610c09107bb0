import { type DeliveryAttempt, DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { startDeliveryWorker, type WorkerProcess } from '../support/delivery-worker.ts'
import type { Operator } from '../support/operator.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { startStack } from '../support/stack.ts'
import type { TestDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'

/** Hostile paths of the receiver, each with the expected outcome of an attempt. */
export const hostilePaths: Record<string, 'answered' | 'timeout' | 'network_error' | 'too_large' | 'unreadable'> = {
  '/drip-one-byte': 'timeout',
  '/drip-the-head': 'timeout',
  '/hang': 'timeout',
  '/hang-in-body': 'timeout',
  '/early-hints-flood': 'too_large',
  '/continue-flood': 'too_large',
  '/chunk-extension-flood': 'too_large',
  '/endless-chunk-extension': 'too_large',
  '/trailer-flood': 'too_large',
  '/100-mb': 'too_large',
  '/endless-200': 'too_large',
  '/endless-500': 'too_large',
  '/endless-gzip': 'too_large',
  '/header-flood': 'too_large',
  '/reset-in-headers': 'network_error',
  '/reset-in-body': 'network_error',
  '/close-without-a-word': 'network_error',
  '/no-http': 'unreadable',
  '/200-and-more': 'answered',
}

export interface HostileSetup {
  receiver: Receiver
  worker: WorkerProcess
  leads: Operator['leads']
  workspaceId: string
  subscriptions: Map<string, string>
  perPath: number
  rounds: number
}

/** Starts a stack, a worker and subscriptions for all hostile destinations. */
export async function startHostileSetup(
  database: TestDatabase,
  { deadlineMs, perPath }: { deadlineMs: number; perPath: number },
): Promise<HostileSetup> {
  const receiver = await startReceiver()
  const coreEnv = { DELIVERY_ALLOWED_CIDRS: '127.0.0.1/32', DELIVERY_ATTEMPT_DEADLINE_MS: String(deadlineMs) }
  const stack = await startStack({ database, cores: 1, gateways: 0, coreEnv })
  const { leads } = stack.operator()
  const { workspaceId } = stack.demo
  const subscriptions = new Map<string, string>()
  for (const path of Object.keys(hostilePaths)) {
    const destinationUrl = `${receiver.http}${path}`
    subscriptions.set(path, (await leads.createSubscription({ workspaceId, destinationUrl })).subscriptionId)
  }
  const worker = await startDeliveryWorker(stack, { LOG_LEVEL: 'warn' })
  return { receiver, worker, leads, workspaceId, subscriptions, perPath, rounds: 0 }
}

/**
 * Sends `perPath` deliveries to every path concurrently. Resolves with the first attempt of each delivery, by path.
 */
export async function runHostileRound(
  setup: HostileSetup,
  paths = Object.keys(hostilePaths),
): Promise<Map<string, DeliveryAttempt[]>> {
  const { leads, workspaceId, perPath } = setup
  const subscriptions = paths.map((path) => [path, setup.subscriptions.get(path)!] as const)
  setup.rounds += 1
  const { leadId } = await leads.captureLead({ workspaceId, source: 'test', fields: {} })
  await Promise.all(
    subscriptions.flatMap(([, subscriptionId]) =>
      Array.from({ length: perPath }, (_, index) =>
        leads.createDeliveryAttempt({
          leadId,
          subscriptionId,
          idempotencyKey: `${setup.rounds}-${index}-${subscriptionId}`,
        }),
      ),
    ),
  )
  const ended = new Map<string, DeliveryAttempt[]>()
  for (const [path, subscriptionId] of subscriptions) {
    ended.set(
      path,
      await until(`an outcome of each at ${path}`, async () => {
        const { deliveries } = await leads.listDeliveries({ workspaceId, subscriptionId, leadId, limit: 100 })
        const done = deliveries.filter(({ status, latestAttempt }) => {
          return (
            status !== DeliveryStatus.PENDING && (status !== DeliveryStatus.SENDING || latestAttempt!.attemptNumber > 1)
          )
        })
        if (done.length < perPath) return undefined
        const lists = await Promise.all(done.map(({ deliveryId }) => leads.listDeliveryAttempts({ deliveryId })))
        return lists.map(({ attempts }) => attempts[0]!)
      }),
    )
  }
  return ended
}
