import type { ServiceImpl } from '@connectrpc/connect'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { LeadService } from '#proto/lead/v1/lead_pb.js'
import type { Core } from '../../core.ts'
import { ServiceError } from '../../errors.ts'
import { callerOf } from '../../transport/caller.ts'
import { workDeliveries } from './work-deliveries.ts'

/** Workers serve all workspaces, so tokens limited to one workspace are rejected. */
export function workerCalls(core: Core): Pick<ServiceImpl<typeof LeadService>, 'workDeliveries'> {
  return {
    workDeliveries(messages, context) {
      if (callerOf(context).workspaceId !== undefined) throw new ServiceError(ErrorCode.PERMISSION_DENIED)
      return workDeliveries(core, messages, context.signal)
    },
  }
}
