import { randomUUID } from 'node:crypto'
import { type Operator, operatorOf } from '../support/operator.ts'
import { startVisitor } from '../support/visitor.ts'
import { type ClientContext, callTimeoutMs } from './client-context.ts'
import { gatewayOf, pause } from './visitors.ts'

/**
 * Maximum time until a stream ends after its site is deleted. Without faults it takes a second; faults may delay it.
 */
const endsWithinMs = 15_000
/** Shortest retention period. A chaos run is shorter than a day, so its data must not be removed. */
const oneDay = { period: { case: 'days' as const, value: 1 } }

/**
 * Repeatedly creates a site, opens a stream there and deletes the site. Also changes the retention
 * of the demo's workspace, so that sweeps run during the faults. The data of other sites must stay.
 */
export async function deleteSites(context: ClientContext, name: string): Promise<void> {
  const { service, recorder, random, draining, stopped } = context
  const { demo } = service
  const operators = service.cores.map(({ url }) => operatorOf(url, demo.serviceToken))
  const options = { timeoutMs: callTimeoutMs }

  for (let count = 1; !draining.aborted; count += 1) {
    await service.undisturbed(() => deleteOne(count))
    await pause(random.between(300, 1_000), draining)
  }

  async function deleteOne(count: number) {
    await changeRetention(count)
    const site = await newSite(`${name}-${count}`)
    if (!site) return
    const visitor = await startVisitor({
      gatewayUrl: gatewayOf(context),
      origin: demo.origin,
      siteKey: site.siteKey,
      clientInstanceId: `${name}-${count}`,
      callTimeoutMs,
    }).catch(() => undefined)
    const stream = await visitor?.openStream({ after: 0, via: gatewayOf(context) }).catch(() => undefined)
    const isDeleted = await remove(site, count)
    if (stream?.status === 200) {
      const streamEnded = (await Promise.race([stream.ended.then(() => true), pause(endsWithinMs, stopped)])) === true
      // If the run was aborted, the service may have had too little time to end the stream. An open
      // stream is then not recorded.
      if (isDeleted && (streamEnded || !stopped.aborted))
        recorder.add({ kind: 'revoked', visitor: `${name}-${count}`, streamEnded })
    }
    stream?.close()
  }

  /** Repeats a call through random cores until one core answers. Returns undefined if the run ends first. */
  async function persist<T>(call: (operator: Operator) => Promise<T>): Promise<T | undefined> {
    while (!stopped.aborted) {
      const answer = await call(random.pick(operators)).catch(() => undefined)
      if (answer !== undefined) return answer
      await pause(random.between(30, 150))
    }
    return undefined
  }

  async function changeRetention(count: number) {
    const period = count % 2 === 0 ? {} : oneDay
    const retention = { conversations: period, leads: period, audit: period, heldDeliveries: period }
    const request = { workspaceId: demo.workspaceId, retention, idempotencyKey: randomUUID() }
    await persist(({ workspaces }) => workspaces.updateWorkspace(request, options))
  }

  async function newSite(siteName: string) {
    const key = randomUUID()
    const { workspaceId } = demo
    const made = await persist(({ workspaces }) =>
      workspaces.createConnection({ workspaceId, name: siteName, idempotencyKey: `${key}-c` }, options),
    )
    if (!made) return undefined
    const { connectionId } = made.connection!
    const installed = await persist(({ workspaces }) =>
      workspaces.createInstallation({ connectionId, origins: [demo.origin], idempotencyKey: `${key}-i` }, options),
    )
    return installed && { connectionId, siteKey: installed.installation!.publicSiteKey }
  }

  async function remove({ connectionId, siteKey }: { connectionId: string; siteKey: string }, count: number) {
    const idempotencyKey = randomUUID()
    return persist<object>(({ workspaces }) =>
      count % 2 === 0
        ? workspaces.deleteConnection({ connectionId, idempotencyKey }, options)
        : workspaces.deleteInstallation({ siteKey, idempotencyKey }, options),
    )
  }
}
