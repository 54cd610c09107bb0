import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual, promisify } from 'node:util'
import { Code, ConnectError } from '@connectrpc/connect'
import { expect } from 'vitest'
import { type Service, startService } from '../chaos/service.ts'
import { type Operator, operatorOf } from '../support/operator.ts'
import { freePort, inheritedEnvironment, type StartedProcess, startProcess } from '../support/processes.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { startVisitor, type Visitor } from '../support/visitor.ts'
import { type Prometheus, startPrometheus, type Targets } from './prometheus.ts'

/** Longer than the longest wait for an alert: deliveries are late after a minute. */
const alertWithinMs = 150_000

/** A deployment that a Prometheus with the deployed rules watches. */
export interface MonitoredDeployment {
  service: Service
  prometheus: Prometheus
  receiver: Receiver
  operator: Operator
  /** What service discovery finds. A change has an effect after `discover`. */
  targets: Targets
  discover(): Promise<void>
  newVisitor(): Promise<Visitor>
  /** Captures leads for a new subscription to this path of the receiver. Returns the deliveries' subscription. */
  captureLeads(path: string, count: number): Promise<string>
  /** Starts a gateway that is discovered when it runs. It need not become ready. */
  addGateway(options: { env?: Record<string, string>; root?: string }): Promise<AddedGateway>
  /** Waits until an alert with these labels fires. Other labels and the severity come from the rule. */
  firing(alert: string, labels?: Record<string, string>): Promise<void>
  /** Waits until the alerts with this name and these labels do not fire any more. */
  mended(alert: string, labels?: Record<string, string>): Promise<void>
  /** Waits until no alert fires. */
  quiet(): Promise<void>
  stop(): Promise<void>
}

export interface AddedGateway {
  instance: string
  process: StartedProcess
  /** Stops the gateway, and removes it from service discovery. */
  remove(): Promise<void>
}

export const instanceOf = ({ metricsPort }: { metricsPort: number }): string => `127.0.0.1:${metricsPort}`

/** Runs a command of the project, such as `dev/make/token.ts`, and returns what it prints. */
export async function runNode(file: string, args: string[], env: Record<string, string>): Promise<string> {
  const path = join(import.meta.dirname, '../..', file)
  const { stdout } = await promisify(execFile)(process.execPath, [path, ...args], {
    env: { ...inheritedEnvironment(), ...env },
  })
  return stdout.trim()
}

/** Repeats a call while a core or the database is busy or ends. */
const repeated = <Answer>(call: () => Promise<Answer>) =>
  until('an answer', () =>
    call().catch((error) => {
      if (ConnectError.from(error).code !== Code.Unavailable) throw error
      return undefined
    }),
  )

/** Starts two cores, a gateway, a worker and Prometheus as processes. */
export async function startMonitoredDeployment(): Promise<MonitoredDeployment> {
  const receiver = await startReceiver()
  const env = {
    // The default. The chaos suite has less.
    MONGODB_TIMEOUT_MS: '5000',
    // One destination gets hundreds of attempts at once.
    DELIVERY_CONCURRENCY: '2400',
    DELIVERY_PER_DESTINATION: '600',
    DELIVERY_ATTEMPT_DEADLINE_MS: '60000',
  }
  const service = await startService({ cores: 2, gateways: 1, workers: 1, env })
  const folder = await mkdtemp(join(tmpdir(), 'service-prometheus-'))
  const targets: Targets = {
    'service-core': service.cores.map(instanceOf),
    'service-gateway': service.gateways.map(instanceOf),
    'service-delivery': service.workers.map(instanceOf),
  }
  const prometheus = await startPrometheus(folder, targets)
  const severities = new Map(prometheus.rules.map(({ alert, labels }) => [alert, labels]))
  const { demo } = service
  const operator = operatorOf(service.cores[0]!.url, demo.serviceToken)
  const discover = () => prometheus.discover(targets)

  async function found(alert: string, labels: Record<string, string>) {
    const wanted = { alertname: alert, ...severities.get(alert), ...labels }
    const firing = (await prometheus.alerts()).filter(({ state }) => state === 'firing')
    return firing.filter((each) => isDeepStrictEqual({ ...each.labels, ...wanted }, each.labels))
  }

  async function waitFor(what: string, isTrue: () => Promise<boolean>) {
    for (const deadline = performance.now() + alertWithinMs; !(await isTrue()); await delay(250))
      if (performance.now() > deadline)
        throw new Error(`timed out waiting until ${what}. Alerts: ${JSON.stringify(await prometheus.alerts())}`)
  }

  return {
    service,
    prometheus,
    receiver,
    operator,
    targets,
    discover,
    newVisitor: () => startVisitor({ ...demo, gatewayUrl: service.gateways[0]!.url }),

    async captureLeads(path, count) {
      const { workspaceId } = demo
      const destinationUrl = receiver.http + path
      const subscription = { workspaceId, destinationUrl, mappedFields: ['email'] }
      const { subscriptionId } = await repeated(() => operator.leads.createSubscription(subscription))
      const capture = async (index: number) => {
        const lead = { workspaceId, source: 'test', fields: { email: `${index}@example.com` } }
        const { leadId } = await repeated(() => operator.leads.captureLead(lead))
        const delivery = { leadId, subscriptionId, idempotencyKey: randomUUID() }
        await repeated(() => operator.leads.createDeliveryAttempt(delivery))
      }
      // More calls at once would exceed the time limit of the database on a busy machine.
      for (let first = 0; first < count; first += 50)
        await Promise.all(Array.from({ length: Math.min(50, count - first) }, (_, index) => capture(first + index)))
      return subscriptionId
    },

    async addGateway({ env, root }) {
      const [port, metricsPort] = [await freePort(), await freePort()]
      const added = await startProcess({
        entry: 'gateway/main.ts',
        root,
        name: 'another gateway',
        env: {
          DATA_DIR: service.dataDir,
          CORE_URLS: service.cores.map(({ callers }) => `http://127.0.0.1:${callers.port}`).join(),
          GATEWAY_PORT: String(port),
          METRICS_PORT: String(metricsPort),
          ...env,
        },
        readyUrl: `http://127.0.0.1:${metricsPort}/metrics`,
      })
      const instance = instanceOf({ metricsPort })
      targets['service-gateway'].push(instance)
      await discover()
      return {
        instance,
        process: added,
        async remove() {
          targets['service-gateway'] = targets['service-gateway'].filter((each) => each !== instance)
          await discover()
          await added.stop()
        },
      }
    },

    async firing(alert, labels = {}) {
      expect(severities.has(alert)).toBe(true)
      const text = `${alert} ${JSON.stringify(labels)}`
      await waitFor(`${text} fires`, async () => (await found(alert, labels)).length === 1)
    },
    mended: (alert, labels = {}) => waitFor(`${alert} ends`, async () => (await found(alert, labels)).length === 0),
    quiet: () =>
      waitFor('no alert fires', async () => (await prometheus.alerts()).every(({ state }) => state !== 'firing')),

    async stop() {
      await service.stop()
      await receiver.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
