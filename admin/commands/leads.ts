import { toJson } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import {
  DeliverySchema,
  DeliveryStatusSchema,
  RecoverDeliveriesResponseSchema,
  RetryDeliveryAttemptResponseSchema,
  SendTestDeliveryResponseSchema,
} from '#proto/lead/v1/delivery_pb.js'
import {
  ActivateSubscriptionSecretResponseSchema,
  CreateSubscriptionResponseSchema,
  ListSubscriptionsResponseSchema,
  RotateSubscriptionSecretResponseSchema,
  UpdateSubscriptionResponseSchema,
} from '#proto/lead/v1/subscription_pb.js'
import { leadEventTypes } from '../../contract/event-kinds.ts'
import { leadTitle } from '../../contract/lead-title.ts'
import { command, type Group } from '../command.ts'
import { oneOf, UsageError } from '../usage.ts'
import { deletion } from './deletion.ts'
import { header, limitsOf, notFound, rate, statuses, toHeader } from './destination-flags.ts'
import { workspace } from './workspace-flag.ts'

const subscription = {
  type: 'string',
  required: true,
  description: 'the id of the subscription or hook, or the host of the subscription’s destination',
} as const
/** Flags that select a subscription by its id, or by its workspace and destination. */
const named = {
  subscription,
  workspace: { type: 'string', description: 'the subscription’s workspace, if it is named by its destination' },
} as const
const field = {
  type: 'string',
  multiple: true,
  description: 'a field of the lead to send; `email=mail` sends it as `mail`; repeatable',
} as const
/** Flags of what is sent by itself. */
const policy = {
  event: { type: 'string', multiple: true, description: `an event to send: ${leadEventTypes.join(', ')}` },
  source: { type: 'string', multiple: true, description: 'only leads from pre-chat-form, offline-form or services' },
  installation: { type: 'string', multiple: true, description: 'only leads of the installation with this site key' },
} as const

export const subscriptions: Group = {
  create: command({
    summary: 'Create a subscription; its secret is shown only now',
    flags: {
      workspace,
      url: { type: 'string', required: true, description: 'the destination' },
      field,
      header,
      automatic: { type: 'boolean', description: 'send every captured lead automatically' },
      ...policy,
      rate,
      'not-found': notFound,
    },
    run: async (
      { leads },
      { workspace, url, field = [], header = [], automatic = false, rate, 'not-found': notFound, ...chosen },
    ) =>
      toJson(
        CreateSubscriptionResponseSchema,
        await leads.createSubscription({
          workspaceId: workspace,
          destinationUrl: url,
          mappedFields: field.map(nameOf),
          sentNames: sentNamesOf(field),
          headers: header.map(toHeader),
          automatic,
          policy: policyOf(chosen),
          ...limitsOf(rate, notFound),
        }),
      ),
  }),
  list: command({
    summary: 'List the subscriptions of a workspace, newest first',
    flags: { workspace },
    run: async ({ leads }, { workspace }) =>
      toJson(ListSubscriptionsResponseSchema, await leads.listSubscriptions({ workspaceId: workspace })),
  }),
  update: command({
    summary: 'Change a subscription; given fields replace the present ones',
    flags: {
      ...named,
      url: {
        type: 'string',
        description:
          'the destination; another scheme, host or port removes the headers, and `droppedHeaders` names them',
      },
      field,
      ...policy,
      header: { ...header, description: 'as for create; `name` alone keeps its value, an empty text removes all' },
      status: { type: 'string', description: 'enabled or disabled' },
      rate: { ...rate, description: 'requests per second, at most; 0 for no limit' },
      'not-found': notFound,
    },
    run: async ({ leads }, { subscription, url, field, header, status, rate, 'not-found': notFound, ...chosen }) =>
      toJson(
        UpdateSubscriptionResponseSchema,
        await leads.updateSubscription({
          subscriptionId: subscription,
          destinationUrl: url,
          mappedFields: field && { names: field.map(nameOf) },
          sentNames: field && { names: sentNamesOf(field) },
          policy: policyOf(chosen),
          headers: header && { headers: header.filter((text) => text !== '').map(toHeader) },
          status: status === undefined ? undefined : oneOf('status', status, statuses),
          ...limitsOf(rate, notFound),
        }),
      ),
  }),
  delete: deletion({
    what: 'a subscription with its deliveries',
    flags: named,
    run: ({ leads }, { subscription }) => leads.deleteSubscription({ subscriptionId: subscription }),
  }),
  rotate: command({
    summary: 'Create a new secret, shown only now; the old one signs until `activate` or the end of the overlap',
    flags: { ...named, overlap: { type: 'string', description: 'seconds; default 24 hours' } },
    run: async ({ leads }, { subscription, overlap }) =>
      toJson(
        RotateSubscriptionSecretResponseSchema,
        await leads.rotateSubscriptionSecret({
          subscriptionId: subscription,
          overlapSeconds: overlap === undefined ? undefined : Number(overlap),
        }),
      ),
  }),
  activate: command({
    summary: 'Let a rotated secret sign `X-Service-Webhook-Signature`',
    flags: {
      ...named,
      secret: { type: 'string', required: true, description: 'the secret’s id, from `subscriptions list`' },
    },
    run: async ({ leads }, { subscription, secret }) =>
      toJson(
        ActivateSubscriptionSecretResponseSchema,
        await leads.activateSubscriptionSecret({ subscriptionId: subscription, secretId: secret }),
      ),
  }),
}

const nameOf = (field: string) => field.split('=')[0] ?? ''

/** Returns the names under which fields are sent: `email=mail` is the field `email` as `mail`. */
const sentNamesOf = (fields: string[]) =>
  Object.fromEntries(fields.filter((field) => field.includes('=')).map((field) => field.split('=')))

/** Returns the policy that the flags give. One flag replaces the whole policy. */
const policyOf = (flags: Partial<Record<keyof typeof policy, string[] | undefined>>) =>
  Object.values(flags).some((values) => values !== undefined)
    ? { types: flags.event ?? [], sources: flags.source ?? [], installations: flags.installation ?? [] }
    : undefined

function timeOf(flag: string, text: string) {
  const time = new Date(text)
  if (Number.isNaN(time.getTime())) throw new UsageError(`--${flag} must be an ISO time, like 2026-01-31T12:00:00Z`)
  return timestampFromDate(time)
}

const deliveryStatuses = Object.fromEntries(
  DeliveryStatusSchema.values
    .filter(({ number }) => number !== 0)
    .map(({ localName, number }) => [localName.toLowerCase(), number]),
)

export const deliveries: Group = {
  list: command({
    summary: 'List the deliveries of a workspace, newest first',
    flags: {
      workspace,
      subscription: { type: 'string', description: 'only deliveries to this subscription: id or host' },
      lead: { type: 'string', description: 'only deliveries of this lead' },
      status: { type: 'string', multiple: true, description: Object.keys(deliveryStatuses).join(', ') },
      since: { type: 'string', description: 'ISO time; only deliveries that were created then or later' },
      until: { type: 'string', description: 'ISO time; only deliveries that were created earlier' },
      limit: { type: 'string', description: '1 to 100; default 50' },
      page: { type: 'string', description: '`nextPageToken` of the previous page' },
    },
    run: async ({ leads }, { workspace, subscription, lead, status = [], since, until, limit, page = '' }) => {
      const answer = await leads.listDeliveries({
        workspaceId: workspace,
        subscriptionId: subscription,
        leadId: lead,
        statuses: status.map((each) => oneOf('status', each, deliveryStatuses)),
        createdSince: since === undefined ? undefined : timeOf('since', since),
        createdUntil: until === undefined ? undefined : timeOf('until', until),
        limit: limit === undefined ? undefined : Number(limit),
        pageToken: page,
      })
      const leadIds = [...new Set(answer.deliveries.map(({ leadId }) => leadId).filter(Boolean))]
      const [{ subscriptions }, found] = await Promise.all([
        leads.listSubscriptions({ workspaceId: workspace }),
        leadIds.length > 0 ? leads.listLeads({ workspaceId: workspace, leadIds }) : { leads: [] },
      ])
      const destinations = new Map(subscriptions.map((each) => [each.subscriptionId, each.destinationUrl]))
      const titles = new Map(found.leads.map((each) => [each.leadId, leadTitle(each)]))
      return {
        deliveries: answer.deliveries.map((delivery) => ({
          destination: destinations.get(delivery.subscriptionId),
          lead: titles.get(delivery.leadId),
          ...(toJson(DeliverySchema, delivery) as object),
        })),
        nextPageToken: answer.nextPageToken,
      }
    },
  }),
  recover: command({
    summary: 'Schedule failed deliveries of a subscription again; without `--yes`, only count them',
    flags: {
      ...named,
      since: { type: 'string', required: true, description: 'ISO time of the first delivery' },
      until: { type: 'string', description: 'ISO time after the last delivery; default now' },
      status: { type: 'string', multiple: true, description: 'failed, dead_lettered, held; default all' },
      event: { type: 'string', multiple: true, description: 'only deliveries of these events; default all' },
      yes: { type: 'boolean', description: 'schedule them' },
    },
    run: async ({ leads }, { subscription, since, until, status = [], event = [], yes = false }) =>
      toJson(
        RecoverDeliveriesResponseSchema,
        await leads.recoverDeliveries({
          subscriptionId: subscription,
          since: timeOf('since', since),
          until: until === undefined ? undefined : timeOf('until', until),
          statuses: status.map((each) => oneOf('status', each, deliveryStatuses)),
          eventTypes: event,
          preview: !yes,
        }),
      ),
  }),
  test: command({
    summary: 'Send a sample to the destination of a subscription or hook',
    flags: { ...named, event: { type: 'string', description: 'the event, one of those that are sent' } },
    run: async ({ leads }, { subscription, event: eventType }) =>
      toJson(SendTestDeliveryResponseSchema, await leads.sendTestDelivery({ subscriptionId: subscription, eventType })),
  }),
  retry: command({
    summary: 'Retry a delivery at once',
    flags: { attempt: { type: 'string', required: true, description: 'the id of its latest attempt' } },
    run: async ({ leads }, { attempt }) =>
      toJson(RetryDeliveryAttemptResponseSchema, await leads.retryDeliveryAttempt({ attemptId: attempt })),
  }),
}
