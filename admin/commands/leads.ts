import { toJson } from '@bufbuild/protobuf'
import {
  DeliveryStatusSchema,
  ListDeliveriesResponseSchema,
  RetryDeliveryAttemptResponseSchema,
} from '#proto/lead/v1/delivery_pb.js'
import {
  CreateSubscriptionResponseSchema,
  ListSubscriptionsResponseSchema,
  RotateSubscriptionSecretResponseSchema,
  SubscriptionStatus,
  UpdateSubscriptionResponseSchema,
} from '#proto/lead/v1/subscription_pb.js'
import { command, type Group } from '../command.ts'
import { oneOf } from '../usage.ts'

const workspace = { type: 'string', required: true, description: 'the workspace’s id' } as const
const subscription = { type: 'string', required: true, description: 'the subscription’s id' } as const
const field = { type: 'string', multiple: true, description: 'a field of leads that is sent; several times' } as const
const statuses = { enabled: SubscriptionStatus.ENABLED, disabled: SubscriptionStatus.DISABLED }

export const subscriptions: Group = {
  create: command({
    summary: 'Send leads to a destination; the secret is shown this once',
    flags: {
      workspace,
      url: { type: 'string', required: true, description: 'the destination' },
      field,
      automatic: { type: 'boolean', description: 'every captured lead goes out by itself' },
    },
    run: async ({ leads }, { workspace, url, field = [], automatic = false }) =>
      toJson(
        CreateSubscriptionResponseSchema,
        await leads.createSubscription({
          workspaceId: workspace,
          destinationUrl: url,
          mappedFields: field,
          automatic,
        }),
      ),
  }),
  list: command({
    summary: 'The subscriptions of a workspace, the newest first',
    flags: { workspace },
    run: async ({ leads }, { workspace }) =>
      toJson(ListSubscriptionsResponseSchema, await leads.listSubscriptions({ workspaceId: workspace })),
  }),
  update: command({
    summary: 'Change a subscription: fields that are given replace those that it has',
    flags: {
      subscription,
      url: { type: 'string', description: 'the destination' },
      field,
      status: { type: 'string', description: 'enabled or disabled' },
    },
    run: async ({ leads }, { subscription, url, field, status }) =>
      toJson(
        UpdateSubscriptionResponseSchema,
        await leads.updateSubscription({
          subscriptionId: subscription,
          ...(url === undefined ? {} : { destinationUrl: url }),
          ...(field && { mappedFields: { names: field } }),
          ...(status === undefined ? {} : { status: oneOf('status', status, statuses) }),
        }),
      ),
  }),
  rotate: command({
    summary: 'A new secret, shown this once; the one before signs beside it until the overlap ends',
    flags: { subscription, overlap: { type: 'string', description: 'seconds, 24 hours where left out' } },
    run: async ({ leads }, { subscription, overlap }) =>
      toJson(
        RotateSubscriptionSecretResponseSchema,
        await leads.rotateSubscriptionSecret({
          subscriptionId: subscription,
          ...(overlap === undefined ? {} : { overlapSeconds: Number(overlap) }),
        }),
      ),
  }),
}

const deliveryStatuses = Object.fromEntries(
  DeliveryStatusSchema.values
    .filter(({ number }) => number !== 0)
    .map(({ localName, number }) => [localName.toLowerCase(), number]),
)

export const deliveries: Group = {
  list: command({
    summary: 'The deliveries of a workspace, the newest first',
    flags: {
      workspace,
      subscription: { type: 'string', description: 'only those to this subscription' },
      lead: { type: 'string', description: 'only those of this lead' },
      status: { type: 'string', multiple: true, description: Object.keys(deliveryStatuses).join(', ') },
      limit: { type: 'string', description: '1 to 100, 50 where left out' },
      page: { type: 'string', description: '`nextPageToken` of the page before' },
    },
    run: async ({ leads }, { workspace, subscription, lead, status = [], limit, page = '' }) =>
      toJson(
        ListDeliveriesResponseSchema,
        await leads.listDeliveries({
          workspaceId: workspace,
          ...(subscription === undefined ? {} : { subscriptionId: subscription }),
          ...(lead === undefined ? {} : { leadId: lead }),
          statuses: status.map((each) => oneOf('status', each, deliveryStatuses)),
          ...(limit === undefined ? {} : { limit: Number(limit) }),
          pageToken: page,
        }),
      ),
  }),
  retry: command({
    summary: 'Another attempt of a delivery, at once',
    flags: { attempt: { type: 'string', required: true, description: 'the id of its latest attempt' } },
    run: async ({ leads }, { attempt }) =>
      toJson(RetryDeliveryAttemptResponseSchema, await leads.retryDeliveryAttempt({ attemptId: attempt })),
  }),
}
