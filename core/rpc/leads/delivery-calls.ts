import type { MessageInitShape } from '@bufbuild/protobuf'
import { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { ServiceImpl } from '@connectrpc/connect'
import {
  AttemptPhase,
  type DeliveryAttemptSchema,
  type DeliverySchema,
  DeliveryStatus,
  FailureReason,
  ResponseClass,
} from '#proto/lead/v1/delivery_pb.js'
import type { LeadService } from '#proto/lead/v1/lead_pb.js'
import type { CoreContext } from '../../context.ts'
import { type AttemptView, viewAttempts } from '../../deliveries/attempt-view.ts'
import type { Delivery } from '../../delivery-stores/model.ts'
import { invalid } from '../../errors.ts'
import { callerOf, requiredWorkspace } from '../../transport/caller.ts'
import { enumValue, nameOf } from '../enum-names.ts'

type Calls = ServiceImpl<typeof LeadService>

/** Calls about deliveries for operators and other services. */
export function deliveryCalls({
  deliveries,
}: CoreContext): Pick<
  Calls,
  'createDeliveryAttempt' | 'sendTestDelivery' | 'retryDeliveryAttempt' | 'listDeliveryAttempts' | 'listDeliveries'
> {
  return {
    async createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey }, context) {
      const request = { leadId, subscriptionId, idempotencyKey }
      const { attempt, existing } = await deliveries.createAttempt(request, callerOf(context))
      return { attempt: toAttempt(attempt), existing }
    },

    async sendTestDelivery({ subscriptionId, idempotencyKey, eventType }, context) {
      const request = { subscriptionId, idempotencyKey, eventType }
      const { attempt, existing } = await deliveries.sendTest(request, callerOf(context))
      return { attempt: toAttempt(attempt), existing }
    },

    async retryDeliveryAttempt({ attemptId, ofLead, idempotencyKey }, context) {
      const request = { attemptId, ofLead, idempotencyKey }
      const { attempt, existing } = await deliveries.retryAttempt(request, callerOf(context))
      return { attempt: toAttempt(attempt), existing }
    },

    async listDeliveryAttempts({ leadId, deliveryId }, context) {
      if ((leadId === '') === (deliveryId === '')) throw invalid('/leadId', 'oneOf')
      const of = leadId === '' ? { deliveryId } : { leadId }
      return { attempts: (await deliveries.listAttempts(of, callerOf(context))).map(toAttempt) }
    },

    async listDeliveries(request, context) {
      const { workspaceId, subscriptionId, leadId, statuses, createdSince, createdUntil, limit, pageToken } = request
      const names = statuses.map((status) => {
        const name = nameOf(DeliveryStatus, status)
        if (!name) throw invalid('/statuses', 'enum')
        return name
      })
      const { deliveries: found, nextPageToken = '' } = await deliveries.list({
        workspaceId: requiredWorkspace(context, workspaceId),
        subscriptionId,
        leadId,
        statuses: names.length === 0 ? undefined : names,
        since: createdSince && timestampDate(createdSince),
        until: createdUntil && timestampDate(createdUntil),
        limit,
        pageToken: pageToken || undefined,
      })
      return { deliveries: found.map(toDelivery), nextPageToken }
    },
  }
}

function toAttempt(attempt: AttemptView): MessageInitShape<typeof DeliveryAttemptSchema> {
  const { status, responseClass, failureReason, failurePhase, nextRetryAt, createdAt, updatedAt, ...rest } = attempt
  return {
    ...rest,
    status: enumValue(DeliveryStatus, status),
    responseClass: responseClass ? enumValue(ResponseClass, responseClass) : ResponseClass.UNSPECIFIED,
    failureReason: failureReason ? enumValue(FailureReason, failureReason) : FailureReason.UNSPECIFIED,
    failurePhase: failurePhase ? enumValue(AttemptPhase, failurePhase) : AttemptPhase.UNSPECIFIED,
    nextRetryAt: nextRetryAt && timestampFromDate(nextRetryAt),
    createdAt: timestampFromDate(createdAt),
    updatedAt: timestampFromDate(updatedAt),
  }
}

function toDelivery(delivery: Delivery): MessageInitShape<typeof DeliverySchema> {
  const { deliveryId, leadId, subscriptionId, status, createdAt, updatedAt, handoff } = delivery
  const latest = viewAttempts(delivery).at(-1)
  return {
    deliveryId,
    leadId,
    subscriptionId,
    status: enumValue(DeliveryStatus, status),
    latestAttempt: latest && toAttempt(latest),
    createdAt: timestampFromDate(createdAt),
    updatedAt: timestampFromDate(updatedAt),
    handoff: handoff && { ...handoff, at: timestampFromDate(handoff.at) },
  }
}
