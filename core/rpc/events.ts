import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { ConnectRouter, HandlerContext } from '@connectrpc/connect'
import {
  type EventSchema,
  EventsService,
  type FollowEventsRequest,
  type FollowEventsResponse,
  FollowEventsResponseSchema,
} from '#proto/events/v1/events_pb.js'
import type { Core } from '../core.ts'
import { type FeedEvent, feedReaderOf } from '../feed/feed-reader.ts'
import { reasonOf } from '../feed/model.ts'
import { contactOf } from '../leads/leads.ts'
import { field, integer, validate } from '../rules.ts'
import { requiredWorkspace } from '../transport/caller.ts'
import { toLead } from './leads/lead.ts'
import { toMessage, toRating } from './messaging-values.ts'

const maxWaitSeconds = 30
/** The pause between responses of a stream without events. */
const heartbeatMs = 15_000
/** Removed ids that wait for a slow reader. The oldest are dropped. */
const maxRemoved = 10_000

export function eventsService(router: ConnectRouter, core: Core) {
  async function* followEvents(
    { workspaceId: named, cursor: from, types, since }: FollowEventsRequest,
    context: HandlerContext,
  ): AsyncGenerator<FollowEventsResponse> {
    const workspaceId = requiredWorkspace(context, named)
    const feedReader = feedReaderOf(core)
    const { signal } = context
    let cursor = from
    let removed: string[] = []
    let removal = new AbortController()
    const leave = feedReader.onRemoved(workspaceId, (ids) => {
      removed = [...removed, ...ids].slice(-maxRemoved)
      removal.abort()
    })
    try {
      for (let waitMs = 0; !signal.aborted && !core.closing.signal.aborted; waitMs = heartbeatMs) {
        const page = await feedReader.read(
          { workspaceId, cursor, types, since: since && timestampDate(since) },
          { waitMs, signal, wake: AbortSignal.any([signal, removal.signal]) },
        )
        cursor = page.cursor
        const removedConversationIds = removed.filter((id) => id.startsWith('cnv_'))
        const removedLeadIds = removed.filter((id) => id.startsWith('lead_'))
        removed = []
        removal = new AbortController()
        const events = page.events.map(toEvent)
        yield create(FollowEventsResponseSchema, { events, cursor, removedConversationIds, removedLeadIds })
      }
    } finally {
      leave()
    }
  }

  router.service(EventsService, {
    async listEvents({ workspaceId: named, cursor, types, limit, waitSeconds = 0, since }, context) {
      const workspaceId = requiredWorkspace(context, named)
      validate(field('/waitSeconds', waitSeconds, integer(0, maxWaitSeconds)))
      const options = { waitMs: waitSeconds * 1_000, signal: context.signal }
      const query = { workspaceId, cursor, types, limit, since: since && timestampDate(since) }
      const page = await feedReaderOf(core).read(query, options)
      return { events: page.events.map(toEvent), cursor: page.cursor }
    },

    followEvents,
  })
}

function toEvent({ cursor, entry, event, lead }: FeedEvent): MessageInitShape<typeof EventSchema> {
  const { type, occurredAt, conversationId, sequence, leadId, delivery, workflowId, disabled } = entry
  const { agent, sentAt, messageId, tag } = event?.data ?? {}
  const isVisitors = type === 'visitor.identified' || type === 'visitor.left'
  return {
    cursor,
    type,
    occurredAt: timestampFromDate(occurredAt),
    conversationId,
    sequence,
    message: event?.message && { message: toMessage(event) },
    assignment: agent && type.startsWith('conversation.') ? { agent } : undefined,
    botRequest: agent && type === 'human.requested' ? { bot: agent } : undefined,
    visitor: event && isVisitors ? { sessionId: event.sessionId ?? '', reason: reasonOf(event) ?? '' } : undefined,
    leadId,
    lead: type === 'lead.captured' && lead ? toLead(lead) : undefined,
    delivery,
    workflowId,
    subscriptionDisabled: disabled,
    rating: event && toRating(event),
    unseen:
      sentAt === undefined
        ? undefined
        : { messageId, sentAt: timestampFromDate(new Date(sentAt)), contact: lead && contactOf(lead) },
    tagChange: tag ? { tag } : undefined,
    redactedMessageId: type === 'message.redacted' ? messageId : undefined,
  }
}
