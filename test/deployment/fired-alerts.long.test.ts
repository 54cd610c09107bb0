/**
 * A real fault fires each alert of `deploy/prometheus/alerts.yaml`, and its mend ends it. Prometheus
 * reads the metrics of a deployment. Only durations of the rules are shortened, see `prometheus.ts`.
 */
import { execFile } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { readFile, rm, writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { coreCertificates } from '../support/certificates.ts'
import { copyWithChanges } from '../support/source-copy.ts'
import { until } from '../support/until.ts'
import { instanceOf, type MonitoredDeployment, runNode, startMonitoredDeployment } from './monitored-deployment.ts'
import { hasPrometheus } from './prometheus.ts'

if (!hasPrometheus) console.info('prometheus is not installed; skipping the alerts that real faults fire')

/** Alerts that no test here fires, with the reason. `alerts.test.ts` tests their rules. */
const notFired = {
  ServiceSendQueueGrows:
    'needs 5,000 waiting sends while a core answers slowly; if no core answers, the gateway refuses sends at once',
  ServiceWakeupsMissed: 'needs more than one lost wake-up each second, again and again',
  ServiceDatabaseSlow: '`test/operator/slow-database.long.test.ts` slows the database; here it is frozen',
  ServiceDatabaseDiskFull: 'needs a full disk',
  ServiceLogLinesDropped: 'needs a full disk; `dev/test/full-log-disk.test.ts` has one, and reads the metric',
  ServicePartRestarts: 'needs three starts within half a minute here, for which a busy machine is too slow',
  ServiceDatabaseDiskFills: 'needs a day of growth',
  ServiceDestinationFails: 'its limit is an hour',
  ServiceFollowerBehind: 'needs more sends than a core follows for five minutes',
  ServiceJobStuck: 'its limit is three periods and five minutes',
}
const fired = new Set<string>()

let deployment: MonitoredDeployment
let traffic: Traffic

interface Traffic {
  sent(): number
  stop(): Promise<void>
}

/** Light traffic: a visitor with a stream sends, an agent answers, and a lead is delivered. */
async function startTraffic({ newVisitor, operator, service, receiver }: MonitoredDeployment): Promise<Traffic> {
  const { workspaceId } = service.demo
  const destinationUrl = `${receiver.http}/200`
  await operator.leads.createSubscription({ workspaceId, destinationUrl, mappedFields: ['email'], automatic: true })
  const visitor = await newVisitor()
  const stream = await visitor.openStream()
  const { conversationId } = visitor.session
  const stopped = new AbortController()
  let sent = 0

  async function send() {
    const { status } = await visitor.send('Do you ship to Graz?')
    if (status !== 202) return
    const answer = { conversationId, clientOperationId: randomUUID(), body: 'We do.' }
    await operator.messaging.sendAgentMessage(answer, { timeoutMs: 5_000 })
    const lead = { workspaceId, source: 'test', fields: { email: 'a@b.example' } }
    if (sent % 10 === 0) await operator.leads.captureLead(lead, { timeoutMs: 5_000 })
    sent += 1
  }

  // A send does not wait for the one before, which can take longer than the windows of the rules.
  const ended = (async () => {
    const running: Promise<void>[] = []
    while (!stopped.signal.aborted) {
      running.push(send().catch(() => {}))
      await delay(500, undefined, { signal: stopped.signal }).catch(() => {})
    }
    await Promise.all(running)
  })()
  return {
    sent: () => sent,
    async stop() {
      stopped.abort()
      await ended
      stream.close()
    },
  }
}

async function firing(alert: string, labels?: Record<string, string>) {
  await deployment.firing(alert, labels)
  fired.add(alert)
}

/** Stops and continues a process in turns, so that it gets little processor time. */
function starve(signal: (name: NodeJS.Signals) => void) {
  const ended = new AbortController()
  const done = (async () => {
    while (!ended.signal.aborted) {
      signal('SIGSTOP')
      await delay(350)
      signal('SIGCONT')
      await delay(100)
    }
  })()
  return () => {
    ended.abort()
    return done
  }
}

describe.skipIf(!hasPrometheus)('alerts', () => {
  beforeAll(async () => {
    deployment = await startMonitoredDeployment()
    traffic = await startTraffic(deployment)
  })
  afterAll(async () => {
    await traffic?.stop()
    await deployment?.stop()
  })

  it('none fires on a healthy deployment', async () => {
    const seconds = 45
    const { prometheus } = deployment
    const scraped = (times: number) =>
      until(`${times} scrapes of each part`, async () => {
        const scrapes = await prometheus.query('count_over_time(up[5m])')
        return scrapes.length === 4 && scrapes.every(({ value }) => value > times)
      })
    // Before the first scrapes, all parts are missing, and a rule sees a scrape some time later.
    await scraped(10)
    await scraped(10 + seconds)
    expect(traffic.sent()).toBeGreaterThan(seconds / 2)
    expect(await prometheus.query(`count_over_time(ALERTS{alertstate="firing"}[${seconds}s])`)).toEqual([])
  })

  it('fire when the database stops', async () => {
    const { service } = deployment
    service.engine.signal('SIGSTOP')
    try {
      await Promise.all([
        ...service.cores.map((core) => firing('ServiceDatabaseDown', { instance: instanceOf(core) })),
        firing('ServiceFailures'),
        firing('ServiceSendsSlow'),
        firing('ServiceDatabaseFailures'),
      ])
    } finally {
      service.engine.signal('SIGCONT')
    }
    await deployment.quiet()
  })

  it('fire when a destination is gone and another one always fails', async () => {
    const { operator, captureLeads, service } = deployment
    const { workspaceId } = service.demo
    const gone = await captureLeads('/410', 1)
    const subscriptionId = await captureLeads('/500', 1)
    const { deliveries } = await operator.leads.listDeliveries({ workspaceId, subscriptionId })
    const { deliveryId } = deliveries[0]!
    // An operator retries, because the schedule has the last attempt after a day.
    await until('the dead letter', async () => {
      const { attempts } = await operator.leads.listDeliveryAttempts({ deliveryId })
      const retry = { attemptId: attempts[0]!.attemptId, idempotencyKey: randomUUID() }
      return attempts.length >= 9 || void (await operator.leads.retryDeliveryAttempt(retry).catch(() => {}))
    })
    await Promise.all([firing('ServiceDeadLetters'), firing('ServiceSubscriptionDisabled', { reason: 'gone' })])
    await operator.leads.updateSubscription({ subscriptionId, status: SubscriptionStatus.DISABLED })
    await operator.leads.updateSubscription({ subscriptionId: gone, status: SubscriptionStatus.ENABLED })
    await deployment.mended('ServiceSubscriptionDisabled')
  })

  describe.concurrent('in parts', () => {
    it('fire when the delivery worker dies with running attempts', async () => {
      const { service, receiver, captureLeads, targets, discover } = deployment
      const worker = service.workers[0]!
      receiver.on('/held', () => {})
      const subscriptionId = await captureLeads('/held', 30)
      await until('running attempts', () => receiver.to('/held').length === 30)
      await worker.kill()
      await firing('ServicePartDown', { job: 'service-delivery', instance: instanceOf(worker) })
      targets['service-delivery'] = []
      await discover()
      await firing('ServicePartMissing', { job: 'service-delivery' })
      await firing('ServiceDeliveriesLate')
      receiver.on('/held', (_, response) => void response.writeHead(200).end())
      await worker.start()
      targets['service-delivery'] = [instanceOf(worker)]
      await discover()
      await firing('ServiceLeasesExpire')
      await Promise.all(
        ['ServicePartMissing', 'ServiceDeliveriesLate', 'ServiceLeasesExpire'].map((alert) => deployment.mended(alert)),
      )
      await deployment.operator.leads.updateSubscription({ subscriptionId, status: SubscriptionStatus.DISABLED })
    })

    it('fire when a core dies, and when its clock is wrong', async () => {
      const { service } = deployment
      const core = service.cores[1]!
      const gateway = { instance: instanceOf(service.gateways[0]!) }
      await core.kill()
      await firing('ServicePartDown', { job: 'service-core', instance: instanceOf(core) })
      await firing('ServiceCoreLost', gateway)
      await core.start()
      await deployment.mended('ServicePartDown', { instance: instanceOf(core) })
      await deployment.mended('ServiceCoreLost', gateway)

      await core.moveClock(3_000)
      await firing('ServiceClockOff', { instance: instanceOf(core) })
      await firing('ServiceWakeupsLate')
      await core.moveClock(0)
      await deployment.mended('ServiceClockOff')
      await deployment.mended('ServiceWakeupsLate')
    })

    it('fire when a gateway has an expiring token, and an expiring and then a broken certificate', async () => {
      const { dataDir } = deployment.service
      const [cert, key] = [join(dataDir, 'client.crt'), join(dataDir, 'client.key')]
      const request = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
      await promisify(execFile)('openssl', [
        ...request,
        '-subj',
        '/CN=gateway',
        '-days',
        '7',
        '-keyout',
        key,
        '-out',
        cert,
      ])
      const scopes = ['--subject', 'gateway', '--scopes', 'visitors:act', '--days', '7']
      const token = await runNode('dev/make/token.ts', scopes, { DATA_DIR: dataDir })
      const gateway = await deployment.addGateway({ env: { CORE_TOKEN: token, CLIENT_CERT: cert, CLIENT_KEY: key } })
      const labels = { job: 'service-gateway', instance: gateway.instance, part: 'gateway' }
      await firing('ServiceTokenExpires', labels)
      await firing('ServiceCertificateExpires', labels)
      await writeFile(cert, 'half of a certificate')
      await firing('ServiceCertificateBroken', labels)
      const { client } = coreCertificates.first
      await Promise.all([writeFile(cert, client.cert), writeFile(key, client.key)])
      await deployment.mended('ServiceCertificateBroken')
      await deployment.mended('ServiceCertificateExpires')
      await gateway.remove()
      await deployment.mended('ServiceTokenExpires')
    })

    it('fire when a gateway has the token of another deployment', async () => {
      const otherKey = { DATA_DIR: deployment.service.dataDir, SECRET_KEYS: `k1:${randomBytes(32).toString('base64')}` }
      const token = await runNode('dev/make/token.ts', ['--subject', 'gateway', '--scopes', 'visitors:act'], otherKey)
      const gateway = await deployment.addGateway({ env: { CORE_TOKEN: token } })
      await firing('ServiceGatewayWithoutCore', { instance: gateway.instance })
      await gateway.remove()
      await deployment.mended('ServiceGatewayWithoutCore')
    })

    it('fire when a gateway of another version stays', async () => {
      const root = await copyWithChanges([])
      const path = join(root, 'package.json')
      const description = JSON.parse(await readFile(path, 'utf8'))
      await writeFile(path, JSON.stringify({ ...description, version: '0.1.9' }))
      const gateway = await deployment.addGateway({ root })
      await firing('ServiceVersionsDiffer')
      await gateway.remove()
      await deployment.mended('ServiceVersionsDiffer')
      await rm(root, { recursive: true })
    })
  })

  it('fire when all cores hang while deliveries end', async () => {
    const { service, receiver, captureLeads } = deployment
    // The alert about dead letters ends too, when its window has passed.
    await deployment.quiet()
    const held: ServerResponse[] = []
    receiver.on('/long', (_, response) => void held.push(response))
    await captureLeads('/long', 550)
    await until('running attempts', () => held.length >= 550)
    for (const core of service.cores) core.signal('SIGSTOP')
    try {
      for (const response of held) response.writeHead(200).end()
      await Promise.all([
        firing('ServiceResultsUnreported', { instance: instanceOf(service.workers[0]!) }),
        firing('ServiceGatewayWithoutCore', { instance: instanceOf(service.gateways[0]!) }),
        ...service.cores.map((core) => firing('ServicePartDown', { instance: instanceOf(core) })),
      ])
    } finally {
      for (const core of service.cores) core.signal('SIGCONT')
    }
    await deployment.quiet()
  })

  it('fire when a gateway gets too little processor time', async () => {
    const gateway = deployment.service.gateways[0]!
    const stopStarving = starve(gateway.signal)
    await firing('ServiceEventLoopSlow', { job: 'service-gateway', instance: instanceOf(gateway) }).finally(
      stopStarving,
    )
    await deployment.quiet()
  })

  it('are all fired here, or named with the reason', () => {
    const names = deployment.prometheus.rules.map(({ alert }) => alert)
    expect([...fired, ...Object.keys(notFired)].sort()).toEqual(names.sort())
  })
})
