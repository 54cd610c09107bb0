import type { ServiceImpl } from '@connectrpc/connect'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { LeadService } from '#proto/lead/v1/lead_pb.js'
import type { CoreContext } from '../context.ts'
import { ServiceError } from '../errors.ts'
import { callerOf, requiredWorkspace } from './caller.ts'
import { fromResult, statusName, toAttempt, toClaimed, toDelivery } from './delivery-values.ts'

type Calls = ServiceImpl<typeof LeadService>

/** Calls of operators and other services about deliveries. */
export function deliveryCalls({
  deliveries,
}: CoreContext): Pick<
  Calls,
  'createDeliveryAttempt' | 'retryDeliveryAttempt' | 'listDeliveryAttempts' | 'listDeliveries'
> {
  return {
    async createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey }, context) {
      const request = { leadId, subscriptionId, idempotencyKey }
      const { attempt, existing } = await deliveries.createAttempt(request, callerOf(context))
      return { attempt: toAttempt(attempt), existing }
    },

    async retryDeliveryAttempt({ attemptId, idempotencyKey }, context) {
      const { attempt, existing } = await deliveries.retryAttempt({ attemptId, idempotencyKey }, callerOf(context))
      return { attempt: toAttempt(attempt), existing }
    },

    async listDeliveryAttempts({ leadId, deliveryId }, context) {
      if ((leadId === '') === (deliveryId === '')) throw invalid('/leadId', 'oneOf')
      const of = leadId === '' ? { deliveryId } : { leadId }
      return { attempts: (await deliveries.listAttempts(of, callerOf(context))).map(toAttempt) }
    },

    async listDeliveries({ workspaceId, subscriptionId, leadId, statuses, limit, pageToken }, context) {
      const names = statuses.map((status) => {
        const name = statusName(status)
        if (!name) throw invalid('/statuses', 'enum')
        return name
      })
      const { deliveries: found, nextPageToken = '' } = await deliveries.list({
        workspaceId: requiredWorkspace(context, workspaceId),
        ...(subscriptionId === undefined ? {} : { subscriptionId }),
        ...(leadId === undefined ? {} : { leadId }),
        ...(names.length === 0 ? {} : { statuses: names }),
        ...(limit === undefined ? {} : { limit }),
        ...(pageToken === '' ? {} : { pageToken }),
      })
      return { deliveries: found.map(toDelivery), nextPageToken }
    },
  }
}

/** Calls of delivery workers. They serve all workspaces, so tokens limited to one are rejected. */
export function workerCalls({
  deliveryClaims,
  deliveryResults,
  config,
}: CoreContext): Pick<Calls, 'claimDeliveries' | 'renewClaims' | 'recordAttempts'> {
  const times = { deadlineMs: config.DELIVERY_ATTEMPT_DEADLINE_MS, leaseMs: config.DELIVERY_LEASE_MS }
  return {
    async claimDeliveries({ workerId, limit, perDestination, underWay, waitMs, onlyNew }, context) {
      if (callerOf(context).workspaceId !== undefined) throw new ServiceError(ErrorCode.PERMISSION_DENIED)
      const claimed = await deliveryClaims.claim({
        workerId,
        limit,
        perDestination,
        underWay: new Map(Object.entries(underWay)),
        waitMs,
        onlyNew,
        signal: context.signal,
      })
      return { deliveries: claimed.map((delivery) => toClaimed(delivery, times)) }
    },

    async renewClaims({ claims }, context) {
      if (callerOf(context).workspaceId !== undefined) throw new ServiceError(ErrorCode.PERMISSION_DENIED)
      const renewed = await deliveryClaims.renew(claims)
      return { renewed: renewed.map((held) => ({ held })) }
    },

    async recordAttempts({ results }, context) {
      if (callerOf(context).workspaceId !== undefined) throw new ServiceError(ErrorCode.PERMISSION_DENIED)
      const read = results.map((result, index) => {
        const known = fromResult(result)
        if (!known) throw invalid(`/results/${index}`, 'oneOf')
        return known
      })
      const counted = await deliveryResults.record(read)
      return { recorded: counted.map((counts) => ({ counted: counts })) }
    },
  }
}

function invalid(path: string, rule: string): ServiceError {
  return new ServiceError(ErrorCode.VALIDATION_FAILED, { issues: [{ path, rule }] })
}
