import type { MessageInitShape } from '@bufbuild/protobuf'
import type {
  PresenceReportSchema,
  PresenceUpdateSchema,
  PresentStreamSchema,
} from '#proto/messaging/v1/messaging_pb.js'
import type { EventLink } from './event-link.ts'

type PresentStream = MessageInitShape<typeof PresentStreamSchema>
type Report = MessageInitShape<typeof PresenceReportSchema>
type Update = MessageInitShape<typeof PresenceUpdateSchema>

/**
 * Tells every core which visitors have a stream on this gateway, and which tabs show the chat.
 * Each core keeps this presence in memory, so it need not be stored.
 */
export interface PresenceRelay {
  /**
   * Call each time a core has opened the stream, also when it moves to another core. `stream`
   * identifies the stream in a later call of `ended`.
   */
  opened(stream: object, visitor: { conversationId: string; workspaceId: string }): void
  ended(stream: object): void
  report(report: Report): void
  /** Sends all open streams to a core that the gateway has just connected to. */
  greet(link: Pick<EventLink, 'send'>): void
  /** Sends what has changed, or an empty update. Call at least twice a second. */
  flush(links: Iterable<Pick<EventLink, 'send'>>): void
}

export const PRESENCE_FLUSH_MS = 250
const STREAMS_PER_UPDATE = 1_000

export function createPresenceRelay(): PresenceRelay {
  const streams = new Map<object, PresentStream & { streamId: number }>()
  let changes = { opened: [] as PresentStream[], ended: [] as number[], reports: [] as Report[] }
  let lastId = 0

  const send = (link: Pick<EventLink, 'send'>, value: Update) => link.send({ case: 'presence', value })

  return {
    opened(stream, { conversationId, workspaceId }) {
      if (streams.has(stream)) return
      lastId = (lastId + 1) >>> 0
      const present = { streamId: lastId, conversationId, workspaceId }
      streams.set(stream, present)
      changes.opened.push(present)
    },

    ended(stream) {
      const present = streams.get(stream)
      if (present === undefined) return
      streams.delete(stream)
      changes.ended.push(present.streamId)
    },

    report: (report) => void changes.reports.push(report),

    greet(link) {
      const opened = [...streams.values()]
      for (let start = 0; start < opened.length; start += STREAMS_PER_UPDATE)
        send(link, { opened: opened.slice(start, start + STREAMS_PER_UPDATE) })
    },

    flush(links) {
      const update = changes
      changes = { opened: [], ended: [], reports: [] }
      for (const link of links) send(link, update)
    },
  }
}
