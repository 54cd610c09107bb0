import { setTimeout as delay } from 'node:timers/promises'
import { type EventStream, startVisitor, type Visitor } from '../support/visitor.ts'
import { textOf } from './history.ts'
import { patienceMs, type Scene } from './scene.ts'

/** A browser that follows the contract: repeats sends until answered and resumes its stream. */
export interface ChaosVisitor {
  name: string
  sessionId: string
  conversationId: string
  /** Sequence of the last event received. */
  position(): number
  /** Resolves when all its sends are answered. */
  sent: Promise<unknown>
  /** Resolves when its stream is permanently closed. */
  followed: Promise<void>
}

/** A stream without a heartbeat for this long is dead. Heartbeats are sent every second. */
const silenceMs = 3_500
const writersPerVisitor = 2

export async function visit(scene: Scene, name: string): Promise<ChaosVisitor | undefined> {
  const visitor = await arrive(scene, name)
  if (!visitor) return undefined
  const { sessionId, conversationId } = visitor.session
  scene.recorder.add({ kind: 'session', visitor: name, sessionId, conversationId })
  const follower = follow(scene, name, visitor)
  const writers = Array.from({ length: writersPerVisitor }, (_, index) => write(scene, name, visitor, index))
  return {
    name,
    sessionId,
    conversationId,
    position: follower.position,
    sent: Promise.all([
      ...writers,
      readHistory(scene, name, visitor),
      reload(scene, name, visitor),
      renew(scene, visitor),
    ]),
    followed: follower.ended,
  }
}

export const gatewayOf = ({ service, random }: Scene) => random.pick(service.gateways).publicUrl
export const pause = (ms: number, signal?: AbortSignal) => delay(ms, undefined, signal && { signal }).catch(() => {})

export async function arrive(scene: Scene, name: string): Promise<Visitor | undefined> {
  const { demo } = scene.service
  while (!scene.over.aborted) {
    const visitor = await startVisitor({
      gatewayUrl: gatewayOf(scene),
      origin: demo.origin,
      siteKey: demo.siteKey,
      clientInstanceId: name,
      creationKey: `session of ${name}`.replaceAll(' ', '-'),
      patienceMs,
    }).catch(() => undefined)
    if (visitor) return visitor
    await pause(scene.random.between(50, 200))
  }
  return undefined
}

async function write(scene: Scene, name: string, visitor: Visitor, writer: number) {
  const { random, over } = scene
  for (let count = 1; !over.aborted; count += 1) {
    const operation = `${name}-${writer}-${count}`
    await send(scene, name, visitor, operation)
    // Repeats, like a browser that did not get the answer.
    if (random.next() < 0.2) await send(scene, name, visitor, operation)
    if (random.next() < 0.1) {
      const state = random.pick(['started', 'stopped'])
      await visitor.call('POST', '/typing', { body: { state }, via: gatewayOf(scene) }).catch(() => {})
    }
    await pause(random.between(20, 150), over)
  }
}

export async function send(scene: Scene, name: string, visitor: Visitor, operation: string) {
  const { recorder, random, closed } = scene
  const { conversationId } = visitor.session
  recorder.add({ kind: 'sent', operation, conversationId })
  const text = textOf(name, `writes ${operation}`)
  while (!closed.aborted) {
    const answer = await visitor
      .send(text, { clientOperationId: operation, via: gatewayOf(scene) })
      .catch(() => undefined)
    if (answer?.status === 202) {
      const { messageId, sequence } = answer.body
      recorder.add({ kind: 'acknowledged', operation, conversationId, messageId, sequence })
      return
    }
    if (answer && !answer.body?.retryable) {
      recorder.add({ kind: 'refused', operation, code: `${answer.status} ${answer.body?.code}` })
      return
    }
    await pause(random.between(30, 150))
  }
  recorder.add({ kind: 'stuck', what: `${operation} is not acknowledged` })
}

/** Repeatedly reads the history, as a page does when it opens. */
async function readHistory(scene: Scene, name: string, visitor: Visitor) {
  const { recorder, random, over } = scene
  while (!over.aborted) {
    await pause(random.between(200, 1_000), over)
    reads += 1
    const read = reads
    recorder.add({ kind: 'history asked', visitor: name, read })
    const messages = await visitor.history({ via: gatewayOf(scene) }).catch(() => undefined)
    if (!messages) continue
    const seen = messages.map(({ messageId, sequence, body }) => ({ messageId, sequence, text: body }))
    recorder.add({ kind: 'history', visitor: name, read, messages: seen })
  }
}

let reads = 0

/** Repeatedly reads the history and streams from its end, as a page does after a replay reset. */
async function reload(scene: Scene, name: string, visitor: Visitor) {
  const { recorder, random, over } = scene
  while (!over.aborted) {
    await pause(random.between(200, 800), over)
    const limit = random.pick([25, 100])
    const read = await visitor.readPages({ via: gatewayOf(scene), limit }).catch(() => undefined)
    if (!read) continue
    const { messages, lastSequence } = read
    const via = gatewayOf(scene)
    const stream = await visitor.openStream({ after: lastSequence, via }).catch(() => undefined)
    if (stream?.status === 200) await pause(random.between(100, 600), over)
    stream?.close()
    await stream?.ended
    const streamed = (stream?.events ?? []).filter(({ data }) => data.message !== undefined)
    recorder.add({
      kind: 'reload',
      visitor: name,
      lastSequence,
      pages: messages.map(({ sequence }) => sequence),
      streamed: streamed.map(({ sequence }) => sequence),
    })
  }
}

async function renew(scene: Scene, visitor: Visitor) {
  for (let count = 1; !scene.over.aborted; await pause(1_000, scene.over)) {
    const { sessionId, renewalToken, renewAfter } = visitor.session
    if (Date.now() < Date.parse(renewAfter)) continue
    const answer = await visitor
      .call('POST', '/sessions/renew', {
        body: { sessionId, renewalToken },
        headers: { 'Idempotency-Key': `renewal-${count}` },
        via: gatewayOf(scene),
      })
      .catch(() => undefined)
    if (answer?.status !== 200) continue
    visitor.session = answer.body
    count += 1
  }
}

/** Follows the visitor's stream. Reconnects when it ends or falls silent, and at random times. */
function follow(scene: Scene, name: string, visitor: Visitor) {
  const { recorder, random, over, closed } = scene
  let position = 0
  let lastEventId: string | undefined

  async function connect(): Promise<EventStream | undefined> {
    recorder.add({ kind: 'stream', visitor: name, after: position })
    return visitor
      .openStream({
        after: position,
        lastEventId,
        via: gatewayOf(scene),
        onEvent({ id, type, sequence, data }) {
          const text = data.message?.body ?? data.label ?? data.author?.displayName
          recorder.add({ kind: 'event', visitor: name, sequence, type, messageId: data.message?.messageId, text })
          position = Math.max(position, sequence)
          lastEventId = id
        },
      })
      .catch(() => undefined)
  }

  async function run() {
    while (!closed.aborted) {
      const stream = await connect()
      if (stream?.status === 200) {
        const leaveAt = performance.now() + random.between(500, 6_000)
        const isOver = stream.ended.then(() => true)
        while (!(await Promise.race([isOver, pause(100)]))) {
          const now = performance.now()
          const leaves = now > leaveAt && !over.aborted
          if (closed.aborted || leaves || now - stream.lastSign() > silenceMs) break
        }
      }
      stream?.close()
      // Buffered events of this stream must be recorded before those of the next.
      await stream?.ended
      await pause(random.between(20, 100))
    }
  }

  return { position: () => position, ended: run() }
}
