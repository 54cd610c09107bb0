import { setTimeout as delay } from 'node:timers/promises'
import { MongoClient } from 'mongodb'
import type { VisitorDocument } from '../../core/bans/bans.ts'
import type { SessionDocument } from '../../core/sessions/session-store.ts'
import { operatorOf } from '../support/operator.ts'
import { startVisitor, type Visitor } from '../support/visitor.ts'
import { callTimeoutMs } from './client-context.ts'
import type { Recorder } from './history.ts'
import type { Service } from './service.ts'

/** Number of sends after which every core has most likely cached the grant's authorization. */
const warmUpSends = 6
const acceptedWithinMs = 10_000
/**
 * Time within which a gateway must reject the session. It is long, because other faults may happen at the same time.
 */
const endedWithinMs = 15_000

let bans = 0

/**
 * Simulates a core that writes a ban and crashes before it notifies the other cores. Then repeats
 * the ban. After the repeat, every gateway must reject the session of the browser's other tab.
 */
export async function repeatBan(service: Service, recorder: Recorder): Promise<string> {
  bans += 1
  const browser = `banned-${bans}`
  const [tab, other] = [await openTab(1), await openTab(2)]
  if (!tab || !other) return 'no ban: no session could be created'
  for (const gateway of service.gateways) {
    for (let count = 0; count < warmUpSends; count += 1) await send(other, gateway.publicUrl)
  }
  if (!(await writeBan(service, other.session.sessionId))) return 'no ban: the engine is down'
  if (!(await ban(tab.session.sessionId))) return 'no ban: no core accepted the repeat'

  const left = new Set(service.gateways)
  for (const began = performance.now(); left.size > 0; await delay(50)) {
    const isLate = performance.now() - began > endedWithinMs
    for (const gateway of left) {
      const answer = await send(other, gateway.publicUrl)
      if (answer?.status === 403 || isLate) left.delete(gateway)
      if (answer?.status === 202 && isLate)
        recorder.add({ kind: 'still live', what: `${browser} can still send through ${gateway.name}` })
    }
  }
  return 'ban repeated after its core died'

  async function openTab(number: number): Promise<Visitor | undefined> {
    const { origin, siteKey } = service.demo
    const [gateway] = service.gateways
    const creationKey = `session-${number}-of-${browser}`
    for (const began = performance.now(); performance.now() - began < acceptedWithinMs; await delay(100)) {
      const request = { origin, siteKey, clientInstanceId: browser, creationKey, callTimeoutMs }
      const visitor = await startVisitor({ gatewayUrl: gateway!.publicUrl, ...request }).catch(() => undefined)
      if (visitor) return visitor
    }
    return undefined
  }

  async function send(visitor: Visitor, via: string) {
    const { conversationId } = visitor.session
    sends += 1
    const operation = `${browser}-${sends}`
    recorder.add({ kind: 'sent', operation, conversationId })
    const answer = await visitor.send('hello', { clientOperationId: operation, via }).catch(() => undefined)
    if (answer?.status !== 202) return answer
    const { messageId, sequence } = answer.body
    recorder.add({ kind: 'acknowledged', operation, conversationId, messageId, sequence })
    return answer
  }

  async function ban(sessionId: string): Promise<boolean> {
    for (const began = performance.now(); performance.now() - began < acceptedWithinMs; await delay(100)) {
      for (const { url } of service.cores) {
        const { sessions } = operatorOf(url, service.demo.serviceToken)
        const options = { timeoutMs: callTimeoutMs }
        const banned = await sessions.banVisitor({ sessionId, reason: 'rude' }, options).catch(() => undefined)
        if (banned) return true
      }
    }
    return false
  }
}

let sends = 0

/** Writes a ban to the database without a wake-up, like a core that crashes before it sends the wake-up. */
async function writeBan({ engine }: Service, sessionId: string): Promise<boolean> {
  const client = new MongoClient(engine.uri, { serverSelectionTimeoutMS: 1_000 })
  try {
    const db = client.db(engine.database)
    const sessions = db.collection<SessionDocument>('sessions')
    const { visitorId } = (await sessions.findOne({ _id: sessionId })) ?? {}
    if (visitorId === undefined) return false
    const ban = { bannedAt: new Date(), banReason: 'rude' }
    await db.collection<VisitorDocument>('visitors').updateOne({ _id: visitorId }, { $set: ban }, { upsert: true })
    await sessions.updateMany({ visitorId, status: 'active' }, { $set: { status: 'banned' } })
    return true
  } catch {
    return false
  } finally {
    await client.close()
  }
}
