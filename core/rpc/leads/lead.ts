import { timestampDate } from '@bufbuild/protobuf/wkt'
import type { ConnectRouter, HandlerContext } from '@connectrpc/connect'
import { DeliveryAttemptSchema, DeliverySchema, DeliveryStatus, RecoverySchema } from '#proto/lead/v1/delivery_pb.js'
import {
  type CaptureLeadRequest,
  FormKind,
  type Lead as LeadMessage,
  LeadSchema,
  LeadService,
} from '#proto/lead/v1/lead_pb.js'
import { type DeliveryEventType, deliveryEvents } from '../../../contract/event-kinds.ts'
import type { ProtoFields } from '../../../contract/proto-fields.ts'
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
import { captureLead, submitForm } from '../../deliveries/lead-capture.ts'
import { type Delivery, deliveryStatuses } from '../../deliveries/model.ts'
import { beginRecovery, previewRecovery } from '../../deliveries/recovery.ts'
import { recoverableStatuses } from '../../deliveries/subscription-model.ts'
import { findSubscription } from '../../deliveries/subscriptions.ts'
import { invalid, ServiceError } from '../../errors.ts'
import { getLead, listLeads } from '../../leads/leads.ts'
import type { Lead } from '../../leads/model.ts'
import { callerOf, callerWorkspace, operatorWrites, requiredWorkspace } from '../../transport/caller.ts'
import type { Caller } from '../../workspaces/access.ts'
import { fromCredentials, nameOf, toProto } from '../proto-values.ts'
import { subscriptionCalls } from './destinations.ts'
import { workDeliveries } from './work-deliveries.ts'

export function leadService(router: ConnectRouter, core: Core) {
  const once = operatorWrites(core)
  const shown = async (requested: ReturnType<typeof createAttempt>, context: HandlerContext) => {
    const { attempt, existing } = await requested
    return { attempt: toAttempt(attempt, callerOf(context)), existing }
  }

  router.service(LeadService, {
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

    createDeliveryAttempt: (request, context) => shown(createAttempt(core, request, callerOf(context)), context),

    sendTestDelivery: (request, context) => shown(sendTest(core, request, callerOf(context)), context),

    retryDeliveryAttempt: (request, context) => shown(retryAttempt(core, request, callerOf(context)), context),

    async listDeliveryAttempts({ leadId, deliveryId }, context) {
      if ((leadId === '') === (deliveryId === '')) throw invalid('/leadId', 'oneOf')
      const of = leadId === '' ? { deliveryId } : { leadId }
      const by = callerOf(context)
      return { attempts: (await listAttempts(core, of, by)).map((attempt) => toAttempt(attempt, by)) }
    },

    async listDeliveries(request, context) {
      const { createdSince, createdUntil } = request
      const { deliveries: found, nextPageToken } = await listDeliveries(core, {
        ...request,
        workspaceId: requiredWorkspace(context, request.workspaceId),
        statuses: fromStatuses(request.statuses, deliveryStatuses),
        since: createdSince && timestampDate(createdSince),
        until: createdUntil && timestampDate(createdUntil),
      })
      const by = callerOf(context)
      return { deliveries: found.map((delivery) => toDelivery(delivery, by)), nextPageToken }
    },

    async recoverDeliveries(request, context) {
      const by = callerOf(context)
      const { subscriptionId, since, until, statuses, eventTypes } = request
      if (!since) throw invalid('/since', 'required')
      const wanted = {
        subscriptionId,
        since: timestampDate(since),
        until: until && timestampDate(until),
        statuses: fromStatuses(statuses, recoverableStatuses),
        // Whether the words are known is checked with the other settings.
        eventTypes: eventTypes.length === 0 ? undefined : (eventTypes as DeliveryEventType[]),
      }
      if (request.preview) return { count: await previewRecovery(core, wanted, by) }
      await once(context, request, (operation) => beginRecovery(core, wanted, by, operation))
      const { recovery } = await findSubscription(core, subscriptionId, by)
      return { recovery: recovery && toProto(RecoverySchema, recovery) }
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

/** Returns the names of statuses. Errors: `ValidationFailed` for a status not in `known`. */
function fromStatuses<Name extends string>(statuses: DeliveryStatus[], known: readonly Name[]) {
  const names = [...new Set(statuses)].map((status) => known.find((name) => name === nameOf(DeliveryStatus, status)))
  if (names.includes(undefined)) throw invalid('/statuses', 'enum')
  return names.length === 0 ? undefined : (names as Name[])
}
