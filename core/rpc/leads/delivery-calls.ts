import { timestampDate } from '@bufbuild/protobuf/wkt'
import type { ServiceImpl } from '@connectrpc/connect'
import { DeliveryAttemptSchema, DeliverySchema, DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import type { LeadService } from '#proto/lead/v1/lead_pb.js'
import { deliveryEvents } from '../../../contract/event-kinds.ts'
import type { Core } from '../../core.ts'
import {
  type AttemptView,
  createAttempt,
  listAttempts,
  listDeliveries,
  retryAttempt,
  sendTest,
  viewAttempts,
} from '../../deliveries/deliveries.ts'
import type { Delivery } from '../../deliveries/model.ts'
import { invalid } from '../../errors.ts'
import { callerOf, requiredWorkspace } from '../../transport/caller.ts'
import type { Caller } from '../../workspaces/access.ts'
import { nameOf, toProto } from '../proto-values.ts'

type Calls = ServiceImpl<typeof LeadService>

/** Calls about deliveries for operators and other services. */
export function deliveryCalls(
  core: Core,
): Pick<
  Calls,
  'createDeliveryAttempt' | 'sendTestDelivery' | 'retryDeliveryAttempt' | 'listDeliveryAttempts' | 'listDeliveries'
> {
  return {
    async createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey }, context) {
      const request = { leadId, subscriptionId, idempotencyKey }
      const { attempt, existing } = await createAttempt(core, request, callerOf(context))
      return { attempt: toAttempt(attempt, callerOf(context)), existing }
    },

    async sendTestDelivery({ subscriptionId, idempotencyKey, eventType }, context) {
      const request = { subscriptionId, idempotencyKey, eventType }
      const { attempt, existing } = await sendTest(core, request, callerOf(context))
      return { attempt: toAttempt(attempt, callerOf(context)), existing }
    },

    async retryDeliveryAttempt({ attemptId, ofLead, idempotencyKey }, context) {
      const request = { attemptId, ofLead, idempotencyKey }
      const { attempt, existing } = await retryAttempt(core, request, callerOf(context))
      return { attempt: toAttempt(attempt, callerOf(context)), existing }
    },

    async listDeliveryAttempts({ leadId, deliveryId }, context) {
      if ((leadId === '') === (deliveryId === '')) throw invalid('/leadId', 'oneOf')
      const of = leadId === '' ? { deliveryId } : { leadId }
      const by = callerOf(context)
      return { attempts: (await listAttempts(core, of, by)).map((attempt) => toAttempt(attempt, by)) }
    },

    async listDeliveries(request, context) {
      const { workspaceId, subscriptionId, leadId, statuses, createdSince, createdUntil, limit, pageToken } = request
      const names = statuses.map((status) => {
        const name = nameOf(DeliveryStatus, status)
        if (!name) throw invalid('/statuses', 'enum')
        return name
      })
      const { deliveries: found, nextPageToken = '' } = await listDeliveries(core, {
        workspaceId: requiredWorkspace(context, workspaceId),
        subscriptionId,
        leadId,
        statuses: names.length === 0 ? undefined : names,
        since: createdSince && timestampDate(createdSince),
        until: createdUntil && timestampDate(createdUntil),
        limit,
        pageToken: pageToken || undefined,
      })
      const by = callerOf(context)
      return { deliveries: found.map((delivery) => toDelivery(delivery, by)), nextPageToken }
    },
  }
}

/** A destination may repeat the data that it received, so its answer needs the scope of that data. */
function toAttempt(attempt: AttemptView, { scopes }: Caller) {
  const { responseText, eventType = 'lead.ready-for-delivery' } = attempt
  const shown = scopes.has(deliveryEvents[eventType].scope) ? responseText : undefined
  return toProto(DeliveryAttemptSchema, { ...attempt, responseText: shown })
}

function toDelivery(delivery: Delivery, by: Caller) {
  const latest = viewAttempts(delivery).at(-1)
  return toProto(DeliverySchema, { ...delivery, latestAttempt: latest && toAttempt(latest, by) })
}
