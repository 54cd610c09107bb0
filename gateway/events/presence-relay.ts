import type { MessageInitShape } from '@bufbuild/protobuf'
import type {
  PresenceReportSchema,
  PresenceUpdateSchema,
  PresentStreamSchema,
} from '#proto/messaging/v1/messaging_pb.js'
import { slicesOf } from '../../platform/concurrency/batcher.ts'
import { perGateway } from '../gateway.ts'
import type { EventLink } from './event-link.ts'

type PresentStream = MessageInitShape<typeof PresentStreamSchema>
type Report = MessageInitShape<typeof PresenceReportSchema>
type Sender = Pick<EventLink, 'send'>
type Update = MessageInitShape<typeof PresenceUpdateSchema>

export const PRESENCE_FLUSH_MS = 500
const STREAMS_PER_UPDATE = 1_000

/** Tells every core which visitors have a stream here and which tabs show the chat. Cores keep this in memory. */
export const presenceOf = perGateway(() => {
  const streams = new Map<object, PresentStream & { streamId: number }>()
  let changes = { opened: [] as PresentStream[], ended: [] as number[], reports: [] as Report[] }
  let lastId = 0

  const send = (link: Sender, value: Update) => link.send({ case: 'presence', value })

  return {
    /** Must be called each time a core has opened the stream, also after a move. */
    opened(stream: object, { conversationId, workspaceId }: { conversationId: string; workspaceId: string }) {
      if (streams.has(stream)) return
      lastId = (lastId + 1) >>> 0
      const present = { streamId: lastId, conversationId, workspaceId }
      streams.set(stream, present)
      changes.opened.push(present)
    },

    ended(stream: object) {
      const present = streams.get(stream)
      if (present === undefined) return
      streams.delete(stream)
      changes.ended.push(present.streamId)
    },

    report: (report: Report) => void changes.reports.push(report),

    greet(link: Sender) {
      for (const opened of slicesOf([...streams.values()], STREAMS_PER_UPDATE)) send(link, { opened })
    },

    /** Must be called each `PRESENCE_FLUSH_MS`, because the streams of a silent gateway do not count. */
    flush(links: Iterable<Sender>) {
      const update = changes
      if (streams.size === 0 && Object.values(update).every(({ length }) => length === 0)) return
      changes = { opened: [], ended: [], reports: [] }
      for (const link of links) send(link, update)
    },
  }
})
