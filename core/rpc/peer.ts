import type { ConnectRouter } from '@connectrpc/connect'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { type AnnouncedEvent, PeerService } from '#proto/peer/v1/peer_pb.js'
import type { CoreContext } from '../context.ts'
import { ServiceError } from '../errors.ts'
import { fromJson } from '../log/peer-client.ts'
import { field, integer, line, validate } from '../rules.ts'

const maxEvents = 1_000
/** Longer contents are dropped. The events are then read from the database. */
const maxJsonLength = 64 * 1024

export function peerService(router: ConnectRouter, { wakeups, processId }: CoreContext): void {
  router.service(PeerService, {
    announceEvents({ coreId, changes, events }) {
      validate(field('/coreId', coreId, line(1, 64)), field('/events', events.length, integer(0, maxEvents)))
      wakeups.announced({ from: coreId, changes, events: events.map(toAnnounced) })
      return { coreId: processId }
    },
  })
}

function toAnnounced({ conversationId, sequence, closed, json }: AnnouncedEvent, index: number) {
  const path = `/events/${index}`
  validate(
    field(`${path}/conversationId`, conversationId, line(1, 64)),
    field(`${path}/sequence`, sequence, integer(1, 2 ** 32 - 1)),
  )
  const end = { conversationId, sequence, closed }
  if (json === undefined || json.length > maxJsonLength) return end
  try {
    return { ...end, event: { ...fromJson(json), conversationId, sequence } }
  } catch {
    throw new ServiceError(ErrorCode.VALIDATION_FAILED, { issues: [{ path: `${path}/json`, rule: 'format' }] })
  }
}
