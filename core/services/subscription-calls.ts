import type { MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { ServiceImpl } from '@connectrpc/connect'
import type { LeadService } from '#proto/lead/v1/lead_pb.js'
import {
  DisabledReason,
  type SubscriptionAuditSchema,
  type SubscriptionSchema,
  SubscriptionStatus,
} from '#proto/lead/v1/subscription_pb.js'
import type { CoreContext } from '../context.ts'
import type { SubscriptionView } from '../leads/lead-subscriptions.ts'
import { liveSecrets, maskedSecret } from '../leads/webhook-secrets.ts'
import type { SubscriptionAuditEntry } from '../store/lead-subscriptions.ts'
import { callerOf, requiredWorkspace } from './caller.ts'

type Calls = ServiceImpl<typeof LeadService>

/** Where leads go. */
export function subscriptionCalls({
  leadSubscriptions,
  now,
}: CoreContext): Pick<
  Calls,
  'createSubscription' | 'updateSubscription' | 'rotateSubscriptionSecret' | 'getSubscription' | 'listSubscriptions'
> {
  const shown = (view: SubscriptionView) => toSubscription(view, new Date(now()))
  return {
    async createSubscription({ workspaceId, destinationUrl, mappedFields, automatic }, context) {
      const by = callerOf(context)
      const settings = { workspaceId: requiredWorkspace(context, workspaceId), destinationUrl, mappedFields, automatic }
      const { secret, ...view } = await leadSubscriptions.create(settings, by)
      return { subscriptionId: view.subscription.subscriptionId, secret, subscription: shown(view) }
    },

    async updateSubscription({ subscriptionId, destinationUrl, mappedFields, status, automatic }, context) {
      const named = statusNames[status]
      const settings = {
        ...(destinationUrl === undefined ? {} : { destinationUrl }),
        ...(mappedFields && { mappedFields: mappedFields.names }),
        ...(automatic === undefined ? {} : { automatic }),
        ...(named && { status: named }),
      }
      return { subscription: shown(await leadSubscriptions.update(subscriptionId, settings, callerOf(context))) }
    },

    async rotateSubscriptionSecret({ subscriptionId, overlapSeconds }, context) {
      const { secret, ...view } = await leadSubscriptions.rotateSecret(
        subscriptionId,
        overlapSeconds,
        callerOf(context),
      )
      return { secret, subscription: shown(view) }
    },

    async getSubscription({ subscriptionId }, context) {
      const { audit, ...view } = await leadSubscriptions.get(subscriptionId, callerOf(context))
      return { subscription: shown(view), audit: audit.map(toAudit) }
    },

    async listSubscriptions({ workspaceId }, context) {
      const found = await leadSubscriptions.list(requiredWorkspace(context, workspaceId))
      return { subscriptions: found.map(shown) }
    },
  }
}

const statusNames = {
  [SubscriptionStatus.UNSPECIFIED]: undefined,
  [SubscriptionStatus.ENABLED]: 'enabled',
  [SubscriptionStatus.DISABLED]: 'disabled',
} as const

const statuses = { enabled: SubscriptionStatus.ENABLED, disabled: SubscriptionStatus.DISABLED }

const reasons = {
  operator: DisabledReason.OPERATOR,
  rejected_auth: DisabledReason.REJECTED_AUTH,
  gone: DisabledReason.GONE,
}

function toSubscription(
  { subscription, heldDeliveries }: SubscriptionView,
  at: Date,
): MessageInitShape<typeof SubscriptionSchema> {
  const { subscriptionId, workspaceId, destinationUrl, mappedFields, automatic, status } = subscription
  const { disabledReason, secrets, createdAt, updatedAt } = subscription
  return {
    subscriptionId,
    workspaceId,
    destinationUrl,
    mappedFields,
    automatic,
    status: statuses[status],
    ...(disabledReason && { disabledReason: reasons[disabledReason] }),
    secrets: liveSecrets(secrets, at).map((secret) => ({
      secretId: secret.secretId,
      masked: maskedSecret(secret),
      createdAt: timestampFromDate(secret.createdAt),
      ...(secret.expiresAt && { expiresAt: timestampFromDate(secret.expiresAt) }),
    })),
    createdAt: timestampFromDate(createdAt),
    updatedAt: timestampFromDate(updatedAt),
    heldDeliveries,
  }
}

function toAudit({
  at,
  actor,
  action,
  attemptId = '',
  disabledReason,
}: SubscriptionAuditEntry): MessageInitShape<typeof SubscriptionAuditSchema> {
  return {
    at: timestampFromDate(at),
    actor,
    action,
    attemptId,
    ...(disabledReason && { disabledReason: reasons[disabledReason] }),
  }
}
