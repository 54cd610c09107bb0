import { setTimeout as delay } from 'node:timers/promises'
import { type EventStream, startVisitor, type Visitor } from '../support/visitor.ts'
import { type ClientContext, callTimeoutMs } from './client-context.ts'
import { textOf } from './history.ts'

/**
 * A simulated browser that follows the contract: it repeats each send until a response arrives, and
 * resumes its stream.
 */
export interface ChaosVisitor {
  name: string
  sessionId: string
  conversationId: string
  /** Sequence of the last received event. */
  position(): number
  /** Resolves when the service has answered all sends of the visitor. */
  sent: Promise<unknown>
  /** Resolves when the visitor's stream has ended and will not reconnect. */
  followed: Promise<void>
}

/** The client closes a stream that is silent for this time. Heartbeats are sent every second. */
export const silenceMs = 3_500
const writersPerVisitor = 2

export async function visit(context: ClientContext, name: string): Promise<ChaosVisitor | undefined> {
  const visitor = await context.service.undisturbed(() => arrive(context, name))
  if (!visitor) return undefined
  const { sessionId, conversationId } = visitor.session
  context.recorder.add({ kind: 'session', visitor: name, sessionId, conversationId })
  const follower = follow(context, name, visitor)
  const writers = Array.from({ length: writersPerVisitor }, (_, index) => write(context, name, visitor, index))
  return {
    name,
    sessionId,
    conversationId,
    position: follower.position,
    sent: Promise.all([
      ...writers,
      readHistory(context, name, visitor),
      reload(context, name, visitor),
      renew(context, visitor),
    ]),
    followed: follower.ended,
  }
}

export const gatewayOf = ({ service, random }: ClientContext) => random.pick(service.gateways).publicUrl
export const pause = (ms: number, signal?: AbortSignal) => delay(ms, undefined, signal && { signal }).catch(() => {})

export async function arrive(context: ClientContext, name: string): Promise<Visitor | undefined> {
  const { demo } = context.service
  while (!context.draining.aborted) {
    const visitor = await startVisitor({
      gatewayUrl: gatewayOf(context),
      origin: demo.origin,
      siteKey: demo.siteKey,
      clientInstanceId: name,
      creationKey: `session of ${name}`.replaceAll(' ', '-'),
      callTimeoutMs,
    }).catch(() => undefined)
    if (visitor) return visitor
    await pause(context.random.between(50, 200))
  }
  return undefined
}

async function write(context: ClientContext, name: string, visitor: Visitor, writer: number) {
  const { random, draining } = context
  for (let count = 1; !draining.aborted; count += 1) {
    const operation = `${name}-${writer}-${count}`
    await send(context, name, visitor, operation)
    // Repeats some sends, like a browser that did not get the response.
    if (random.next() < 0.2) await send(context, name, visitor, operation)
    if (random.next() < 0.1) {
      const state = random.pick(['started', 'stopped'])
      await visitor.call('POST', '/typing', { body: { state }, via: gatewayOf(context) }).catch(() => {})
    }
    await pause(random.between(20, 150), draining)
  }
}

export async function send(
  context: ClientContext,
  name: string,
  visitor: Visitor,
  operation: string,
): Promise<{ sequence: number } | undefined> {
  const { recorder, random, stopped } = context
  const { conversationId } = visitor.session
  recorder.add({ kind: 'sent', operation, conversationId })
  const text = textOf(name, `writes ${operation}`)
  while (!stopped.aborted) {
    const answer = await visitor
      .send(text, { clientOperationId: operation, via: gatewayOf(context) })
      .catch(() => undefined)
    if (answer?.status === 202) {
      const { messageId, sequence } = answer.body
      recorder.add({ kind: 'acknowledged', operation, conversationId, messageId, sequence })
      return { sequence }
    }
    if (answer && !answer.body?.retryable) {
      recorder.add({ kind: 'refused', operation, code: `${answer.status} ${answer.body?.code}` })
      return undefined
    }
    await pause(random.between(30, 150))
  }
  recorder.add({ kind: 'stuck', what: `${operation} is not acknowledged` })
  return undefined
}

/** Repeatedly reads the history, as a page does when it opens. Records each result. */
async function readHistory(context: ClientContext, name: string, visitor: Visitor) {
  const { service, recorder, random, draining } = context
  while (!draining.aborted) {
    await pause(random.between(200, 1_000), draining)
    await service.undisturbed(async () => {
      reads += 1
      const read = reads
      recorder.add({ kind: 'history asked', visitor: name, read })
      const messages = await visitor.history({ via: gatewayOf(context) }).catch(() => undefined)
      if (!messages) return
      const seen = messages.map(({ messageId, sequence, body }) => ({ messageId, sequence, text: body }))
      recorder.add({ kind: 'history', visitor: name, read, messages: seen })
    })
  }
}

let reads = 0

/** Repeatedly reads the history and then streams the events after it, as a page does after a replay reset. */
async function reload(context: ClientContext, name: string, visitor: Visitor) {
  const { service, random, draining } = context
  while (!draining.aborted) {
    await pause(random.between(200, 800), draining)
    await service.undisturbed(() => reloadOnce(context, name, visitor))
  }
}

async function reloadOnce(context: ClientContext, name: string, visitor: Visitor) {
  const { recorder, random, draining } = context
  const limit = random.pick([25, 100])
  const read = await visitor.readPages({ via: gatewayOf(context), limit }).catch(() => undefined)
  if (!read) return
  const { messages, lastSequence } = read
  const via = gatewayOf(context)
  const stream = await visitor.openStream({ after: lastSequence, via }).catch(() => undefined)
  if (stream?.status === 200) await pause(random.between(100, 600), draining)
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

async function renew(context: ClientContext, visitor: Visitor) {
  for (let count = 1; !context.draining.aborted; await pause(1_000, context.draining)) {
    const { sessionId, renewalToken, renewAfter } = visitor.session
    if (Date.now() < Date.parse(renewAfter)) continue
    const answer = await visitor
      .call('POST', '/sessions/renew', {
        body: { sessionId, renewalToken },
        headers: { 'Idempotency-Key': `renewal-${count}` },
        via: gatewayOf(context),
      })
      .catch(() => undefined)
    if (answer?.status !== 200) continue
    visitor.session = answer.body
    count += 1
  }
}

/** Follows the visitor's stream. Reconnects when it ends or falls silent, and at random times. */
function follow(context: ClientContext, name: string, visitor: Visitor) {
  const { recorder, random, draining, stopped } = context
  let position = 0
  let lastEventId: string | undefined
  /** Epoch of the log after a reset, until the history is read again. */
  let resetEpoch: string | undefined

  /** Reads the history after a reset. The stream then continues from its end. */
  async function readAgain(epoch: string) {
    const read = await visitor.readPages({ via: gatewayOf(context) }).catch(() => undefined)
    if (!read) return
    position = read.lastSequence
    lastEventId = `${epoch}-${position}`
    resetEpoch = undefined
    recorder.add({ kind: 'read again', visitor: name, lastSequence: position })
  }

  async function connect(): Promise<EventStream | undefined> {
    recorder.add({ kind: 'stream', visitor: name, after: position })
    return visitor
      .openStream({
        after: position,
        lastEventId,
        via: gatewayOf(context),
        onEvent({ id, type, sequence, data }) {
          const text = data.message?.body ?? data.label ?? data.author?.displayName
          recorder.add({ kind: 'event', visitor: name, sequence, type, messageId: data.message?.messageId, text })
          if (type === 'replay.reset.required' && !data.reauthenticationRequired) resetEpoch = id.split('-')[0]
          else {
            position = Math.max(position, sequence)
            lastEventId = id
          }
        },
      })
      .catch(() => undefined)
  }

  async function run() {
    while (!stopped.aborted) {
      const stream = await connect()
      if (stream?.status === 200) {
        const leaveAt = performance.now() + random.between(500, 6_000)
        const isOver = stream.ended.then(() => true)
        while (!(await Promise.race([isOver, pause(100)]))) {
          const now = performance.now()
          const leaves = now > leaveAt && !draining.aborted
          if (stopped.aborted || leaves || now - stream.lastReceivedAt() > silenceMs) break
        }
      }
      stream?.close()
      // Waits until the buffered events of this stream are recorded. Otherwise, events of the next
      // stream could be recorded first.
      await stream?.ended
      while (resetEpoch !== undefined && !stopped.aborted) {
        await readAgain(resetEpoch)
        await pause(50)
      }
      await pause(random.between(20, 100))
    }
  }

  return { position: () => position, ended: run() }
}
