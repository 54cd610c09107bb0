import type { ServerResponse } from 'node:http'
import type { AcceptedMessage, ServiceMessage } from '../src/vocabulary/gen/wire.ts'
import type { RatingState } from '../src/vocabulary/types.ts'
import type { Scenario } from './scenarios.ts'

const epoch = 'e1'

interface LoggedEvent {
  sequence: number
  type: string
  category?: string
  data: Record<string, unknown>
  atMs?: number
  /** If set, the event is sent only to the streams of this session. */
  sessionId?: string
}

const ratings: Record<string, RatingState> = { 'rating.requested': 'requested', 'rating.given': 'given' }

export type ScenarioConversation = ReturnType<typeof createScenarioConversation>

/** Creates a conversation of the scenario server: its event log and its streams. */
export function createScenarioConversation(id: string, scenario: Scenario, now: () => number) {
  const log: LoggedEvent[] = []
  const messages: ServiceMessage[] = []
  const answers = new Map<string, { body: string; answer: AcceptedMessage }>()
  const streams = new Map<ServerResponse, { silent: boolean; written: number; sessionId?: string }>()
  const left: Scenario = { ...scenario }
  let sequence = 0
  let rating: RatingState | undefined

  return {
    id,
    messages,
    answers,
    streams,
    lastSequence: () => sequence,
    rating: () => rating,

    /** Sets further violations of the contract for this conversation. */
    set: (change: Scenario) => void Object.assign(left, change),

    acceptVisitorMessage(sessionId: string, clientOperationId: string, body: string): AcceptedMessage {
      const message = add({ author: { kind: 'visitor' }, body, sessionId, clientOperationId })
      const { messageId, sequence, createdAt } = message
      const ids = { clientOperationId, messageId, sessionId, conversationId: id }
      const answer = { ...ids, sequence, state: 'queued' as const, acceptedAt: createdAt }
      answers.set(clientOperationId, { body, answer })
      return answer
    },

    /** Emits the event of an accepted message. */
    publishAccepted(clientOperationId: string) {
      const message = messages.find((one) => one.clientOperationId === clientOperationId)
      if (message) publish({ sequence: message.sequence, type: 'message.accepted', data: { message } })
    },

    /** @param about fields that an agent's answer does not have, or other values for those that it has. */
    agentSays(body: string, displayName = 'Anna Keller', about: Partial<ServiceMessage> = {}): ServiceMessage {
      const message = add({ author: { kind: 'agent', displayName }, body, ...about })
      publish({ sequence: message.sequence, type: 'message.received', data: { message } })
      return message
    },

    /** Emits an event. `atMs` is the event's time in the service's clock. */
    emit(type: string, data: Record<string, unknown> = {}, atMs?: number, sessionId?: string, category?: string) {
      sequence += 1
      if (/^(conversation|rating)\./.test(type)) rating = ratings[type]
      publish({ sequence, type, data, atMs, sessionId, category })
    },

    heartbeat() {
      for (const [response, { silent }] of streams) {
        if (!silent && !response.writableEnded) response.write(`: hb ${sequence}\n\n`)
      }
    },

    /** Closes all streams, as if the network was lost. */
    cutStreams() {
      for (const response of streams.keys()) response.socket?.destroy()
    },

    openStream(response: ServerResponse, after: number | undefined, sessionId?: string) {
      response.write(`retry: 200\n: ${' '.repeat(16)}\n\n`)
      if (after !== undefined && (left.resets ?? 0) > 0) {
        left.resets! -= 1
        const data = { reason: 'window', reauthenticationRequired: left.reauthenticate === true }
        write(response, { sequence, type: 'replay.reset.required', data })
        response.end()
        return
      }
      const silent = (left.silentStreams ?? 0) > 0
      if (silent) left.silentStreams! -= 1
      streams.set(response, { silent, written: 0, sessionId })
      response.on('close', () => streams.delete(response))
      for (const event of log.filter((one) => one.sequence > (after ?? sequence))) deliver(response, event)
    },
  }

  function add(part: Pick<ServiceMessage, 'author' | 'body'> & Partial<ServiceMessage>): ServiceMessage {
    sequence += 1
    const message: ServiceMessage = {
      messageId: `msg_${id}_${sequence}`,
      conversationId: id,
      sequence,
      contentType: 'text',
      state: 'queued',
      createdAt: new Date(now()).toISOString(),
      ...part,
    }
    messages.push(message)
    return message
  }

  function publish(event: LoggedEvent) {
    log.push(event)
    if ((left.dropEvents ?? 0) > 0) {
      left.dropEvents! -= 1
      return
    }
    for (const response of streams.keys()) deliver(response, event)
  }

  function deliver(response: ServerResponse, event: LoggedEvent) {
    const stream = streams.get(response)
    if (!stream || stream.silent || response.writableEnded) return
    if (event.sessionId && event.sessionId !== stream.sessionId) return
    write(response, event)
    if (left.repeatEvents) write(response, event)
    stream.written += 1
    if (stream.written >= (left.endAfterEvents ?? Number.POSITIVE_INFINITY)) response.end()
  }

  function write(response: ServerResponse, { sequence, type, category, data, atMs }: LoggedEvent) {
    const payload = { sequence, type, category, occurredAt: new Date(atMs ?? now()).toISOString(), data }
    let text = `id: ${epoch}-${sequence}\nevent: ${type}\ndata: ${JSON.stringify(payload)}\n\n`
    if ((left.garbleEvents ?? 0) > 0) {
      left.garbleEvents! -= 1
      text = `id: ${epoch}-${sequence}\nevent: ${type}\ndata: {"sequence":\n\n`
    }
    if ((left.cutEvents ?? 0) > 0) {
      left.cutEvents! -= 1
      response.write(text.slice(0, -20), () => response.socket?.destroy())
      return
    }
    response.write(text)
  }
}
