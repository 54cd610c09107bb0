import type { ConnectRouter } from '@connectrpc/connect'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { FormKind, LeadService } from '#proto/lead/v1/lead_pb.js'
import type { CoreContext } from '../context.ts'
import { ServiceError } from '../errors.ts'
import { callerOf } from './caller.ts'
import { fromCredentials } from './visitor.ts'

/** `service.lead.v1.LeadService` over the domain. */
export function leadService(router: ConnectRouter, { leads }: CoreContext): void {
  router.service(LeadService, {
    async captureLead({ workspaceId, source, fields, conversationId }, context) {
      const scope = callerOf(context).workspaceId
      const lead = {
        workspaceId: workspaceId || (scope ?? ''),
        source,
        fields,
        ...(conversationId === undefined ? {} : { conversationId }),
      }
      return { leadId: await leads.capture(lead, scope) }
    },

    submitForm({ credentials, form, fields, idempotencyKey }) {
      const kind = kinds[form]
      if (!kind) throw new ServiceError(ErrorCode.VALIDATION_FAILED, { issues: [{ path: '/form', rule: 'enum' }] })
      return leads.submitForm({ credentials: fromCredentials(credentials), form: kind, fields, idempotencyKey })
    },
  })
}

const kinds = {
  [FormKind.UNSPECIFIED]: undefined,
  [FormKind.PRE_CHAT]: 'preChat',
  [FormKind.OFFLINE]: 'offline',
} as const
