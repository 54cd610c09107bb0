import { createClient } from '@connectrpc/connect'
import { PeerService } from '#proto/peer/v1/peer_pb.js'
import { createCoreTransport } from '../../core-client/core-transport.ts'
import type { TlsFiles } from '../../platform/tls/tls-files.ts'
import type { LogEnd, LogEvent } from '../log-event.ts'

/** An event that another core has appended. `event` is absent if it must be read from the log. */
export interface AnnouncedEvent extends LogEnd {
  conversationId: string
  event?: LogEvent
}

/** Events that a core has appended. */
export interface Announcement {
  /** Id of the process that appended the events. */
  from: string
  /** Number of wake-ups with state changes that this process had written before. */
  changes: number
  events: AnnouncedEvent[]
}

/** A connection to another core. */
export interface PeerConnection {
  /**
   * Returns the id of the process that answered. Rejects if no core answers in time. The next call
   * then opens a new connection.
   */
  announce(announcement: Announcement): Promise<string>
  close(): void
}

/** Connects to the core at a URL. */
export type ConnectPeer = (url: string) => PeerConnection

/** Time limit in milliseconds for one call. */
const deadlineMs = 500
/** Time in milliseconds for which a token is used. Its lifetime is twice as long. */
const tokenMs = 300_000

/** Creates the connections of a core to other cores. */
export function createPeerConnections(options: {
  tls?: TlsFiles
  /** Issues a service token with this lifetime in seconds. */
  issueToken: (lifetime: number) => Promise<string>
  monotonic?: () => number
}): ConnectPeer {
  const { tls, issueToken, monotonic = () => performance.now() } = options
  let token = { text: '', until: Number.NEGATIVE_INFINITY }

  async function currentToken() {
    const at = monotonic()
    if (token.until <= at) token = { text: await issueToken((2 * tokenMs) / 1000), until: at + tokenMs }
    return token.text
  }

  return (url) => {
    const transport = createCoreTransport(url, tls)
    const client = createClient(PeerService, transport)
    return {
      async announce({ from, changes, events }) {
        const headers = { authorization: `Bearer ${await currentToken()}` }
        const announced = events.map(({ event, ...end }) => ({ ...end, json: event && toJson(event) }))
        try {
          const request = { coreId: from, changes, events: announced }
          return (await client.announceEvents(request, { headers, timeoutMs: deadlineMs })).coreId
        } catch (error) {
          transport.cut()
          throw error
        }
      },
      close: () => transport.cut(),
    }
  }
}

/** Encodes the fields of an event that streams need. */
function toJson(event: LogEvent): string {
  const { conversationId, sequence, type, occurredAt, sessionId, message, data, closed, transient } = event
  return JSON.stringify({ conversationId, sequence, type, occurredAt, sessionId, message, data, closed, transient })
}

/** Decodes an event that another core has announced. Throws if the text is no event. */
export function fromJson(json: string): LogEvent {
  const event = JSON.parse(json) as LogEvent
  const occurredAt = new Date(event.occurredAt)
  if (typeof event.type !== 'string' || Number.isNaN(occurredAt.getTime())) throw new TypeError('not an event')
  return { ...event, occurredAt }
}
