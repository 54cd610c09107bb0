import type { HandlerContext, ServiceImpl } from '@connectrpc/connect'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { LeadService } from '#proto/lead/v1/lead_pb.js'
import type { CoreContext } from '../../context.ts'
import { ServiceError } from '../../errors.ts'
import { validate } from '../../rules.ts'
import { callerOf } from '../../transport/caller.ts'
import { fromResult, toClaimed } from './attempt-messages.ts'
import { workDeliveries } from './work-deliveries.ts'

type Calls = ServiceImpl<typeof LeadService>

/**
 * Calls for delivery workers. Workers serve all workspaces, so tokens limited to one workspace are
 * rejected.
 */
export function workerCalls(
  core: CoreContext,
): Pick<Calls, 'workDeliveries' | 'claimDeliveries' | 'renewClaims' | 'recordAttempts'> {
  const { waitingClaims, deliveryClaims, deliveryResults, config } = core
  const requireWorker = (context: HandlerContext) => {
    if (callerOf(context).workspaceId !== undefined) throw new ServiceError(ErrorCode.PERMISSION_DENIED)
  }
  return {
    workDeliveries(messages, context) {
      requireWorker(context)
      return workDeliveries(core, messages, context.signal)
    },

    async claimDeliveries({ underWay, ahead, ...request }, context) {
      requireWorker(context)
      const claimed = await waitingClaims.claim({
        ...request,
        underWay: new Map(Object.entries(underWay)),
        ahead: new Map(Object.entries(ahead)),
        signal: context.signal,
      })
      return { deliveries: claimed.map((delivery) => toClaimed(delivery, config)) }
    },

    async renewClaims({ claims }, context) {
      requireWorker(context)
      const renewed = await deliveryClaims.renew(claims)
      return { renewed: renewed.map((held) => ({ held })) }
    },

    async recordAttempts({ results }, context) {
      requireWorker(context)
      const read = results.map((result, index) => {
        const known = fromResult(result)
        validate(known ? undefined : { path: `/results/${index}`, rule: 'oneOf' })
        return known!
      })
      const counted = await deliveryResults.record(read)
      return { recorded: counted.map((counts) => ({ counted: counts })) }
    },
  }
}
