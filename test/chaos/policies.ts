import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { MongoClient } from 'mongodb'
import { ConnectionStatus } from '#proto/workspace/v1/workspace_pb.js'
import { banNetwork } from '../../core/bans/network-bans.ts'
import { collectionsOf } from '../../core/database/collections.ts'
import type { Suppression } from '../../core/leads/model.ts'
import { createWakeupStore } from '../../core/wakeups/wakeup-store.ts'
import type { InstallationSettings } from '../../core/workspaces/model.ts'
import { installationUpdate } from '../../core/workspaces/workspaces.ts'
import { type Operator, operatorOf } from '../support/operator.ts'
import { newSite } from '../support/resources.ts'
import { type Answer, type EventStream, startVisitor, type Visitor } from '../support/visitor.ts'
import { callTimeoutMs } from './client-context.ts'
import type { Recorder } from './history.ts'
import type { Service } from './service.ts'

const preparedWithinMs = 30_000
const mail = 'ada@example.com'
const options = { timeoutMs: callTimeoutMs }
const suppressed = { entries: [{ of: { case: 'email' as const, value: mail } }] }

/** A visitor at one gateway, with an open stream. */
interface Visit {
  gateway: string
  via: string
  visitor: Visitor
  stream: EventStream
}

interface Site {
  siteKey: string
  connectionId: string
  workspaceId: string
  visits: Visit[]
}

interface World {
  service: Service
  recorder: Recorder
  site: Site
  db: ReturnType<typeof collectionsOf>
}

interface PolicyChange {
  /** Prepares the change. May fill the caches with the state before the change. */
  prepare?(world: World, operator: Operator): Promise<unknown>
  /** Writes the change without a wake-up, like a core that announced the change and crashed after the write. */
  write(world: World): Promise<unknown>
  /** Makes the change on a core. */
  call(operator: Operator, site: Site): Promise<unknown>
  /** Returns whether a request at the gateway, or the open stream, shows the change. */
  isSeen(visit: Visit, world: World): Promise<boolean>
}

const installation = (changed: InstallationSettings, isSeen: PolicyChange['isSeen']): PolicyChange => ({
  write: ({ db, site }) => db.installations.updateOne({ _id: site.siteKey }, installationUpdate(changed)),
  call: ({ workspaces }, { siteKey }) => workspaces.updateInstallation({ siteKey, ...(changed as object) }, options),
  isSeen,
})

const changes: Record<string, PolicyChange> = {
  'a capability': installation({ capabilities: { typing: false } }, async (visit) => {
    const answer = await act(visit, '/typing', { state: 'started' })
    return answer?.body?.code === 'RouteNotAdvertised'
  }),

  consent: installation(
    { consent: { required: true, policyUrl: 'https://shop.example/privacy', policyVersion: 'v2' } },
    async (visit, { recorder }) => (await send(recorder, visit))?.body?.code === 'ConsentRequired',
  ),

  'the override of the hours': installation({ availability: { mode: 'away' } }, async ({ stream }) =>
    stream.events.some(({ type, data }) => type === 'availability.changed' && !data.online),
  ),

  disabling: installation({ enabled: false }, (visit, { recorder }) => isEnded(visit, recorder, 'OriginNotAllowed')),

  'a disabled connection': {
    write: ({ db, site }) =>
      db.connections.updateOne(
        { _id: site.connectionId },
        { $set: { status: 'disabled' }, $inc: { statusVersion: 1 } },
      ),
    call: ({ workspaces }, { connectionId }) =>
      workspaces.setConnectionStatus({ connectionId, status: ConnectionStatus.DISABLED }, options),
    isSeen: (visit, { recorder }) => isEnded(visit, recorder, 'ConnectionDisabled'),
  },

  'a revocation': {
    write: ({ db, site }) =>
      db.sessions.updateOne({ _id: site.visits[0]!.visitor.session.sessionId }, { $set: { status: 'revoked' } }),
    call: ({ sessions }, { visits }) =>
      sessions.revokeSession({ sessionId: visits[0]!.visitor.session.sessionId }, options),
    isSeen: async (visit, { recorder, site }) =>
      visit !== site.visits[0] || (await isEnded(visit, recorder, 'SessionRevoked')),
  },

  'a ban of the address': {
    async write({ db, site }) {
      const session = await db.sessions.findOne({ _id: site.visits[0]!.visitor.session.sessionId })
      const { network = '', visitorId = '' } = session ?? {}
      const at = new Date()
      const until = new Date(at.getTime() + 3_600_000)
      await banNetwork({ db, now: () => at.getTime() }, network, [visitorId], until)
    },
    call: ({ sessions }, { visits }) => {
      const { sessionId } = visits[0]!.visitor.session
      return sessions.banVisitor({ sessionId, reason: 'rude', addressBanSeconds: 3_600 }, options)
    },
    async isSeen({ visitor, via }, { site }) {
      const body = { publicSiteKey: site.siteKey, clientInstanceId: randomUUID() }
      const headers = { 'Idempotency-Key': randomUUID() }
      const answer = await visitor.call('POST', '/sessions', { body, headers, via }).catch(() => undefined)
      return answer?.body?.code === 'VisitorBanned'
    },
  },

  suppression: {
    // The id of an entry is a keyed hash that only a core can compute. So a core adds the entry
    // first, and this function removes it from the database without a wake-up. Within a second, the
    // caches of the cores have the empty list.
    async prepare({ db, site: { workspaceId, visits } }, { workspaces }) {
      await workspaces.addSuppressions({ workspaceId, ...suppressed }, options)
      const entry = await db.suppressions.findOneAndDelete({ workspaceId })
      hidden.set(workspaceId, entry!)
      for (const visit of visits)
        for (const began = performance.now(); performance.now() - began < preparedWithinMs; await delay(50))
          if ((await submitForm(visit))?.status === 202) break
    },
    write: ({ db, site: { workspaceId } }) => db.suppressions.insertOne(hidden.get(workspaceId)!),
    call: ({ workspaces }, { workspaceId }) => workspaces.addSuppressions({ workspaceId, ...suppressed }, options),
    isSeen: async (visit) => (await submitForm(visit))?.body?.code === 'VisitorSuppressed',
  },
}

/** Suppression entries that `write` stores later, by workspace id. */
const hidden = new Map<string, Suppression>()

export const policyNames = Object.keys(changes)

export interface PolicyRun {
  name: string
  /**
   * `lost`: the change is announced and written, and no wake-up follows. `killed`: a core makes the
   * change and is killed as soon as the change is in the database. `made`: a core makes the change.
   */
  how: 'lost' | 'killed' | 'made'
  /** Time in milliseconds within which every gateway and stream must show the change. */
  withinMs: number
}

/**
 * Changes a policy while visitors use it. Every gateway and every open stream must show the change within `withinMs`.
 * A request that began within this time may still be accepted. Returns a description with the longest time.
 */
export async function changePolicy(service: Service, recorder: Recorder, run: PolicyRun): Promise<string> {
  const { name, how, withinMs } = run
  const change = changes[name]!
  const client = new MongoClient(service.engine.uri, { serverSelectionTimeoutMS: 1_000 })
  const world = { service, recorder, db: collectionsOf(client.db(service.engine.database)) }
  const site = await prepared(service)
  if (!site) return `${name}: no site could be prepared`
  try {
    const complete: World = { ...world, site }
    const operators = service.cores.map(({ url }) => operatorOf(url, service.demo.serviceToken))
    const isWritten = await (async () => {
      await change.prepare?.(complete, operators[0]!)
      if (how === 'lost') await announceAndWrite(complete, change)
      else if (how === 'made') await change.call(operators[0]!, site)
      else await callAndKill(complete, change)
    })().then(
      () => true,
      () => false,
    )
    if (!isWritten) return `${name}: the engine or the core is down`
    const writtenAt = performance.now()
    const times = await Promise.all(site.visits.map((visit) => untilSeen(visit, complete)))
    return `${name} (${how}) seen after ${Math.round(Math.max(...times))} ms`

    async function untilSeen(visit: Visit, seenBy: World): Promise<number> {
      for (;;) {
        const startedAt = performance.now()
        if (await change.isSeen(visit, seenBy)) return performance.now() - writtenAt
        if (startedAt - writtenAt > withinMs) {
          recorder.add({ kind: 'still live', what: `${visit.gateway} does not show ${name} (${how}) in time` })
          return performance.now() - writtenAt
        }
        await delay(10)
      }
    }
  } finally {
    for (const { stream } of site.visits) stream.close()
    await client.close()
  }
}

/** Announces and writes the change, but sends no wake-up after the write. */
async function announceAndWrite(world: World, change: PolicyChange) {
  const { db, site } = world
  const { sessionId } = site.visits[0]!.visitor.session
  const announced = [{ change: randomUUID(), ids: [site.siteKey, site.connectionId, sessionId] }]
  const wakeups = createWakeupStore({ wakeups: db.wakeups })
  await wakeups.publish({ from: 'dead', heads: [], changed: [], announced, at: new Date() })
  await change.write(world)
}

/** Makes the change on the first core, and kills the core as soon as the database has the change. */
async function callAndKill({ db, service, site }: World, change: PolicyChange) {
  const core = service.cores[0]!
  const { siteKey, connectionId, workspaceId, visits } = site
  const { sessionId } = visits[0]!.visitor.session
  const { network = '' } = (await db.sessions.findOne({ _id: sessionId })) ?? {}
  const read = async () =>
    JSON.stringify([
      await db.installations.findOne({ _id: siteKey }),
      await db.suppressions.countDocuments({ workspaceId }),
      await db.networkBans.countDocuments({ network }),
      (await db.connections.findOne({ _id: connectionId }))?.status,
      (await db.sessions.findOne({ _id: sessionId }))?.status,
    ])
  const before = await read()
  const calling = change.call(operatorOf(core.url, service.demo.serviceToken), site).catch(() => {})
  for (const began = performance.now(); performance.now() - began < preparedWithinMs; ) {
    if ((await read()) === before) continue
    core.signal('SIGKILL')
    await calling
    return
  }
  throw new Error('the change is not in the database')
}

/** Creates a site and one visitor with a stream per gateway. Undefined if the service is down. */
async function prepared(service: Service): Promise<Site | undefined> {
  const { origin } = service.demo
  for (const began = performance.now(); performance.now() - began < preparedWithinMs; await delay(200)) {
    try {
      const operator = operatorOf(service.cores.at(-1)!.url, service.demo.serviceToken)
      const fields = [{ name: 'email', label: 'Mail', type: 'email', required: true }]
      const { workspaceId, connectionId, siteKey } = await newSite(operator, [origin], {
        capabilities: { typing: true, preChatForm: true },
        forms: { preChat: { fields } },
      })
      const visits = await Promise.all(
        service.gateways.map(async ({ name: gateway, publicUrl: via }): Promise<Visit> => {
          const visitor = await startVisitor({ gatewayUrl: via, origin, siteKey, callTimeoutMs })
          const stream = await visitor.openStream({ via })
          if (stream.status !== 200) throw new Error('the stream was refused')
          return { gateway, via, visitor, stream }
        }),
      )
      // Fills the caches of gateways and cores with the state before the change.
      for (const visit of visits) for (let count = 0; count < 4; count += 1) await act(visit, '/typing', started)
      return { siteKey, connectionId, workspaceId, visits }
    } catch {
      // A process is down because of a fault. The loop tries again.
    }
  }
  return undefined
}

/** Returns whether the stream has ended and a message is refused with this code. */
async function isEnded(visit: Visit, recorder: Recorder, code: string): Promise<boolean> {
  const hasEnded = await Promise.race([visit.stream.ended.then(() => true), delay(1, false)])
  return hasEnded && (await send(recorder, visit))?.body?.code === code
}

const started = { state: 'started' }

const act = ({ visitor, via }: Visit, path: string, body: object) =>
  visitor.call('POST', path, { body, headers: { 'Idempotency-Key': randomUUID() }, via }).catch(() => undefined)

const submitForm = (visit: Visit) => act(visit, '/forms/pre-chat', { fields: { email: mail } })

async function send(recorder: Recorder, { visitor, via }: Visit): Promise<Answer | undefined> {
  const { conversationId } = visitor.session
  const operation = `policy-${randomUUID()}`
  recorder.add({ kind: 'sent', operation, conversationId })
  const answer = await visitor.send('hello', { clientOperationId: operation, via }).catch(() => undefined)
  if (answer?.status !== 202) return answer
  const { messageId, sequence } = answer.body
  recorder.add({ kind: 'acknowledged', operation, conversationId, messageId, sequence })
  return answer
}
