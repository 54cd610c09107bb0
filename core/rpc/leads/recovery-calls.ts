import { timestampDate } from '@bufbuild/protobuf/wkt'
import type { ServiceImpl } from '@connectrpc/connect'
import { DeliveryStatus, type RecoverDeliveriesRequest, RecoverySchema } from '#proto/lead/v1/delivery_pb.js'
import type { LeadService } from '#proto/lead/v1/lead_pb.js'
import type { DeliveryEventType } from '../../../contract/event-kinds.ts'
import type { Core } from '../../core.ts'
import { beginRecovery, previewRecovery } from '../../deliveries/recovery.ts'
import {
  type DeliveryRecovery,
  type RecoverableStatus,
  recoverableStatuses,
} from '../../deliveries/subscription-model.ts'
import { findSubscription } from '../../deliveries/subscriptions.ts'
import { invalid } from '../../errors.ts'
import { callerOf, operatorWrites } from '../../transport/caller.ts'
import { nameOf, toProto } from '../proto-values.ts'

export function recoveryCalls(core: Core): Pick<ServiceImpl<typeof LeadService>, 'recoverDeliveries'> {
  const once = operatorWrites(core)
  return {
    async recoverDeliveries(request, context) {
      const by = callerOf(context)
      const { subscriptionId } = request
      const wanted = fromRequest(request)
      if (request.preview) return { count: await previewRecovery(core, wanted, by) }
      await once(context, request, async (operation) => {
        await beginRecovery(core, wanted, by, operation)
        return { subscriptionId }
      })
      const { recovery } = await findSubscription(core, subscriptionId, by)
      return { recovery: recovery && toRecovery(recovery) }
    },
  }
}

function fromRequest({ subscriptionId, since, until, statuses, eventTypes }: RecoverDeliveriesRequest) {
  if (!since) throw invalid('/since', 'required')
  return {
    subscriptionId,
    since: timestampDate(since),
    until: until && timestampDate(until),
    statuses: statuses.length === 0 ? undefined : [...new Set(statuses)].map(recoverable),
    // Whether the words are known is checked with the other settings.
    eventTypes: eventTypes.length === 0 ? undefined : (eventTypes as DeliveryEventType[]),
  }
}

function recoverable(status: DeliveryStatus): RecoverableStatus {
  const name = recoverableStatuses.find((each) => each === nameOf(DeliveryStatus, status))
  if (!name) throw invalid('/statuses', 'enum')
  return name
}

export const toRecovery = (recovery: DeliveryRecovery) => toProto(RecoverySchema, recovery)
