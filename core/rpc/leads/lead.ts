import type { ConnectRouter } from '@connectrpc/connect'
import {
  type CaptureLeadRequest,
  FormKind,
  type Lead as LeadMessage,
  LeadSchema,
  LeadService,
} from '#proto/lead/v1/lead_pb.js'
import type { ProtoFields } from '../../../contract/proto-fields.ts'
import type { Core } from '../../core.ts'
import { captureLead, submitForm } from '../../deliveries/lead-capture.ts'
import { invalid, ServiceError } from '../../errors.ts'
import { getLead, listLeads } from '../../leads/leads.ts'
import type { Lead } from '../../leads/model.ts'
import { callerWorkspace, operatorWrites, requiredWorkspace } from '../../transport/caller.ts'
import { toProto } from '../proto-values.ts'
import { fromCredentials } from '../visitor.ts'
import { deliveryCalls } from './delivery-calls.ts'
import { subscriptionCalls } from './destinations.ts'
import { workDeliveries } from './work-deliveries.ts'

export function leadService(router: ConnectRouter, core: Core) {
  const once = operatorWrites(core)
  router.service(LeadService, {
    ...deliveryCalls(core),
    ...subscriptionCalls(core),

    /** Workers serve all workspaces, so tokens limited to one workspace are rejected. */
    workDeliveries(messages, context) {
      if (callerWorkspace(context) !== undefined) throw new ServiceError('PermissionDenied')
      return workDeliveries(core, messages, context.signal)
    },

    async captureLead(request, context) {
      const { workspaceId, source, fields, conversationId } = request
      const scope = callerWorkspace(context)
      const lead = {
        workspaceId: workspaceId || (scope ?? ''),
        source,
        fields,
        conversationId,
      } satisfies Record<keyof Omit<ProtoFields<CaptureLeadRequest>, 'idempotencyKey'>, unknown>
      return once(context, request, async (operation) => ({ leadId: await captureLead(core, lead, scope, operation) }))
    },

    submitForm({ credentials, form, fields, idempotencyKey }) {
      const kind = kinds[form]
      if (!kind) throw invalid('/form', 'enum')
      return submitForm(core, { credentials: fromCredentials(credentials), form: kind, fields, idempotencyKey })
    },

    async getLead({ leadId }, context) {
      return { lead: toLead(await getLead(core, leadId, callerWorkspace(context))) }
    },

    async listLeads(request, context) {
      const workspaceId = requiredWorkspace(context, request.workspaceId)
      const { leads: found, nextPageToken } = await listLeads(core, { ...request, workspaceId })
      return { leads: found.map(toLead), nextPageToken }
    },
  })
}

/** A field of the proto that leads lack does not compile. */
export const toLead = (lead: Pick<Lead, keyof ProtoFields<LeadMessage>>) => toProto(LeadSchema, lead)

const kinds = {
  [FormKind.UNSPECIFIED]: undefined,
  [FormKind.PRE_CHAT]: 'preChat',
  [FormKind.OFFLINE]: 'offline',
} as const
