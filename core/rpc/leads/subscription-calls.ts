import type { ServiceImpl } from '@connectrpc/connect'
import type { LeadService } from '#proto/lead/v1/lead_pb.js'
import {
  type EventPolicy as EventPolicyMessage,
  SubscriptionAuditSchema,
  SubscriptionPurpose,
  SubscriptionSchema,
  SubscriptionStatus,
  type Workflow as WorkflowMessage,
} from '#proto/lead/v1/subscription_pb.js'
import type { Core } from '../../core.ts'
import {
  defaultDisableAfterNotFound,
  defaultPolicy,
  type EventPolicy,
  type HandoffWhen,
  isHook,
  operationalEvents,
  type SubscriptionAuditEntry,
} from '../../deliveries/subscription-model.ts'
import { maskedDestination, sentNamesOf } from '../../deliveries/subscription-settings.ts'
import {
  activateSecret,
  createSubscription,
  getSubscription,
  listSubscriptions,
  type Requester,
  rotateSecret,
  type SubscriptionView,
  showSecret,
  updateSubscription,
} from '../../deliveries/subscriptions.ts'
import { activeSecret, liveSecrets, maskedSecret } from '../../deliveries/webhook-requests.ts'
import { callerOf, operatorWrites, requiredWorkspace } from '../../transport/caller.ts'
import { operatorDeletion } from '../policy-changes.ts'
import { nameOf, toProto } from '../proto-values.ts'

type Calls = ServiceImpl<typeof LeadService>

export function subscriptionCalls(
  core: Core,
): Pick<
  Calls,
  | 'createSubscription'
  | 'updateSubscription'
  | 'rotateSubscriptionSecret'
  | 'activateSubscriptionSecret'
  | 'deleteSubscription'
  | 'getSubscription'
  | 'listSubscriptions'
> {
  const { now } = core
  const once = operatorWrites(core)
  const deletion = operatorDeletion(core)
  const toCurrent = (view: SubscriptionView) => toSubscription(view, new Date(now()))

  /** Returns the subscription's current state and the secret that a write created. */
  async function withSecret({ subscriptionId, secretId }: { subscriptionId: string; secretId: string }, by: Requester) {
    const { audit: _, ...view } = await getSubscription(core, subscriptionId, by)
    return { secret: showSecret(core, view.subscription, secretId), subscription: toCurrent(view) }
  }

  return {
    async createSubscription(request, context) {
      const { $typeName: _, purpose, idempotencyKey: __, workflow, policy, ...given } = request
      const isOperational = purpose === SubscriptionPurpose.OPERATIONAL_EVENTS
      const kept = { ...fromWorkflow(workflow), ...fromPolicy(policy) }
      const by = callerOf(context)
      const workspaceId = requiredWorkspace(context, request.workspaceId)
      const made = await once(context, request, async (operation) => {
        const operational = isOperational && { resource: 'hook' as const, ...operationalEvents }
        const settings = { ...given, ...kept, workspaceId, ...operational }
        const { subscription, secretId } = await createSubscription(core, settings, by, operation)
        return { subscriptionId: subscription.subscriptionId, secretId }
      })
      return { subscriptionId: made.subscriptionId, ...(await withSecret(made, by)) }
    },

    async updateSubscription(request, context) {
      const { subscriptionId, destinationUrl, mappedFields, status, automatic, headers, maxPerSecond } = request
      const { disableAfterNotFound, sentNames, policy, name } = request
      const by = callerOf(context)
      const named = nameOf(SubscriptionStatus, status)
      const settings = {
        ...(destinationUrl === undefined ? {} : { destinationUrl }),
        ...(name === undefined ? {} : { name }),
        ...(mappedFields && { mappedFields: mappedFields.names }),
        ...(sentNames && { sentNames: sentNames.names }),
        ...fromPolicy(policy),
        ...(automatic === undefined ? {} : { automatic }),
        ...(named && { status: named }),
        ...(headers && { headers: headers.headers }),
        ...(maxPerSecond === undefined ? {} : { maxPerSecond }),
        ...(disableAfterNotFound === undefined ? {} : { disableAfterNotFound }),
        ...fromWorkflow(request.workflow),
      }
      await once(context, request, async (operation) => {
        await updateSubscription(core, subscriptionId, settings, by, operation)
        return { subscriptionId }
      })
      return { subscription: toCurrent(await getSubscription(core, subscriptionId, by)) }
    },

    async rotateSubscriptionSecret(request, context) {
      const { subscriptionId, overlapSeconds } = request
      const by = callerOf(context)
      const { secretId } = await once(context, request, async (operation) => ({
        secretId: (await rotateSecret(core, subscriptionId, overlapSeconds, by, operation)).secretId,
      }))
      return withSecret({ subscriptionId, secretId }, by)
    },

    async activateSubscriptionSecret(request, context) {
      const { subscriptionId, secretId } = request
      const by = callerOf(context)
      await once(context, request, async (operation) => {
        await activateSecret(core, subscriptionId, secretId, by, operation)
        return { subscriptionId }
      })
      return { subscription: toCurrent(await getSubscription(core, subscriptionId, by)) }
    },

    deleteSubscription: (request, context) => deletion(context, request, 'subscription', request.subscriptionId),

    async getSubscription({ subscriptionId }, context) {
      const { audit, ...view } = await getSubscription(core, subscriptionId, callerOf(context))
      return { subscription: toCurrent(view), audit: audit.map(toAudit) }
    },

    async listSubscriptions({ workspaceId: named, limit, pageToken }, context) {
      const workspaceId = requiredWorkspace(context, named)
      const query = { workspaceId, listed: 'subscriptions' as const, limit, pageToken: pageToken || undefined }
      const { page, nextPageToken } = await listSubscriptions(core, query)
      return { subscriptions: page.map(toCurrent), nextPageToken }
    },
  }
}

/** Whether `when` is one of the known words is checked with the other settings. */
const fromWorkflow = (workflow: WorkflowMessage | undefined) =>
  workflow ? { workflow: { workflowId: workflow.workflowId, when: workflow.when as HandoffWhen } } : {}

/** Whether the words are known is checked with the other settings. */
function fromPolicy(policy: EventPolicyMessage | undefined): { policy?: EventPolicy } {
  if (!policy) return {}
  const { types, sources, installations } = policy
  return { policy: { types: types.length === 0 ? defaultPolicy.types : types, sources, installations } as EventPolicy }
}

/** Returns the fields that hooks have too. */
export function toDestination({ subscription, heldDeliveries }: SubscriptionView, at: Date) {
  const { workspaceId, name, maxPerSecond, status, droppedHeaders, secrets, headers = [] } = subscription
  const { disableAfterNotFound = defaultDisableAfterNotFound } = subscription
  const { disabledReason, failingSince, createdAt, updatedAt, recovery } = subscription
  const activeId = activeSecret(secrets, at)?.secretId
  return {
    ...{ workspaceId, name, status, disabledReason, failingSince, recovery, createdAt, updatedAt },
    destinationUrl: maskedDestination(subscription),
    maxPerSecond: maxPerSecond || undefined,
    secrets: liveSecrets(secrets, at).map((secret) => ({
      ...{ secretId: secret.secretId, createdAt: secret.createdAt, expiresAt: secret.expiresAt },
      masked: maskedSecret(secret),
      active: secret.secretId === activeId,
    })),
    headers: headers.map(({ name }) => ({ name, masked: '••••' })),
    droppedHeaders,
    disableAfterNotFound,
    heldDeliveries,
  }
}

function toSubscription(view: SubscriptionView, at: Date) {
  const { subscriptionId, mappedFields, sentNames, automatic, policy, workflow, ...rest } = view.subscription
  return toProto(SubscriptionSchema, {
    ...toDestination(view, at),
    subscriptionId,
    mappedFields,
    sentNames: sentNamesOf(sentNames, mappedFields),
    automatic,
    policy: policy ?? defaultPolicy,
    purpose: isHook(rest) ? 'operational_events' : 'leads',
    workflow: workflow?.workflowId ? workflow : undefined,
  })
}

export const toAudit = (entry: SubscriptionAuditEntry) => toProto(SubscriptionAuditSchema, entry)
