import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError, type ConnectRouter } from '@connectrpc/connect'
import { HookSchema, HookService } from '#proto/hook/v1/hook_pb.js'
import { type DeliveryAttempt, DeliveryAttemptSchema, DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { type Lead, LeadSchema, LeadService } from '#proto/lead/v1/lead_pb.js'
import {
  DisabledReason,
  MaskedHeaderSchema,
  type Subscription,
  type SubscriptionAudit,
  SubscriptionAuditSchema,
  SubscriptionPurpose,
  SubscriptionSchema,
  SubscriptionStatus,
} from '#proto/lead/v1/subscription_pb.js'

/** Fake leads, subscriptions and delivery attempts in memory. */
const masked = (url: string) => `${new URL(url).origin}/••••`

const isHook = ({ purpose }: Subscription) => purpose === SubscriptionPurpose.OPERATIONAL_EVENTS

export function fakeLeads() {
  const leads: Lead[] = []
  const subscriptions: Subscription[] = []
  const audits: SubscriptionAudit[] = []
  const attempts: DeliveryAttempt[] = []
  const byKey = new Map<string, DeliveryAttempt>()
  const now = () => timestampFromMs(Date.now())

  const found = (id: string) => {
    const subscription = subscriptions.find(({ subscriptionId }) => subscriptionId === id)
    if (!subscription) throw new ConnectError('SubscriptionNotFound', Code.NotFound)
    return subscription
  }
  function addAttempt(attempt: MessageInitShape<typeof DeliveryAttemptSchema>) {
    const made = create(DeliveryAttemptSchema, {
      attemptId: `att_${attempts.length + 1}`,
      attemptNumber: 1,
      status: DeliveryStatus.PENDING,
      correlationId: `cor_${attempts.length + 1}`,
      createdAt: now(),
      updatedAt: now(),
      ...attempt,
    })
    attempts.push(made)
    return made
  }
  const latestOf = () => {
    const latest = new Map<string, DeliveryAttempt>()
    for (const attempt of attempts) latest.set(attempt.deliveryId, attempt)
    return [...latest.values()].reverse()
  }

  return {
    attempts,
    subscription: found,
    addLead: (lead: MessageInitShape<typeof LeadSchema>) =>
      leads.unshift(create(LeadSchema, { workspaceId: 'ws_shop', createdAt: now(), ...lead })),
    addAttempt,
    addSubscription: (subscription: MessageInitShape<typeof SubscriptionSchema>) =>
      subscriptions.push(
        create(SubscriptionSchema, {
          status: SubscriptionStatus.ENABLED,
          secrets: [{ secretId: 'sec_1', masked: 'whsec_abcd••••', createdAt: now() }],
          createdAt: now(),
          updatedAt: now(),
          ...subscription,
        }),
      ),
    addAudit: (audit: MessageInitShape<typeof SubscriptionAuditSchema>) =>
      audits.push(create(SubscriptionAuditSchema, { at: now(), ...audit })),

    routes(router: ConnectRouter) {
      router.service(HookService, {
        listHooks: () => ({
          hooks: subscriptions
            .filter(isHook)
            .map(({ subscriptionId: hookId, name, destinationUrl, status, policy }) =>
              create(HookSchema, { hookId, name, destinationUrl, status, eventTypes: policy?.types ?? [] }),
            ),
        }),
        createHook({ name, destinationUrl, eventTypes: types }) {
          const hook = create(SubscriptionSchema, {
            subscriptionId: `hook_${subscriptions.length + 1}`,
            name,
            destinationUrl: masked(destinationUrl),
            purpose: SubscriptionPurpose.OPERATIONAL_EVENTS,
            policy: { types },
            status: SubscriptionStatus.ENABLED,
            updatedAt: now(),
          })
          subscriptions.push(hook)
          return { hookId: hook.subscriptionId, secret: 'whsec_new1c2VjcmV0' }
        },
      })
      router.service(LeadService, {
        getLead({ leadId }) {
          const lead = leads.find((known) => known.leadId === leadId)
          if (!lead) throw new ConnectError('LeadNotFound', Code.NotFound)
          return { lead }
        },
        listLeads: ({ leadIds }) => ({
          leads: leads.filter(({ leadId }) => leadIds.length === 0 || leadIds.includes(leadId)),
        }),
        listSubscriptions: () => ({ subscriptions: subscriptions.filter((each) => !isHook(each)) }),
        getSubscription: ({ subscriptionId }) => ({ subscription: found(subscriptionId), audit: audits }),
        createSubscription({
          name,
          destinationUrl,
          mappedFields,
          automatic,
          policy,
          sentNames,
          maxPerSecond,
          disableAfterNotFound = 5,
        }) {
          const subscription = create(SubscriptionSchema, {
            subscriptionId: `sub_${subscriptions.length + 1}`,
            name,
            destinationUrl: masked(destinationUrl),
            mappedFields,
            automatic,
            policy,
            sentNames,
            maxPerSecond,
            disableAfterNotFound,
            status: SubscriptionStatus.ENABLED,
            secrets: [{ secretId: 'sec_new', masked: 'whsec_new1••••', createdAt: now() }],
            updatedAt: now(),
          })
          subscriptions.push(subscription)
          return { subscriptionId: subscription.subscriptionId, secret: 'whsec_new1c2VjcmV0', subscription }
        },
        deleteSubscription({ subscriptionId }) {
          subscriptions.splice(subscriptions.indexOf(found(subscriptionId)), 1)
          return {}
        },
        updateSubscription({ subscriptionId, destinationUrl, mappedFields, status, automatic, headers, ...rest }) {
          const subscription = found(subscriptionId)
          if (headers) subscription.droppedHeaders = []
          if (headers)
            subscription.headers = headers.headers.map(({ name }) =>
              create(MaskedHeaderSchema, { name, masked: '••••' }),
            )
          if (destinationUrl !== undefined && masked(destinationUrl) !== subscription.destinationUrl) {
            subscription.droppedHeaders = subscription.headers.map(({ name }) => name)
            subscription.headers = []
            subscription.destinationUrl = masked(destinationUrl)
          }
          if (rest.disableAfterNotFound !== undefined) subscription.disableAfterNotFound = rest.disableAfterNotFound
          if (mappedFields) subscription.mappedFields = mappedFields.names
          if (rest.name !== undefined) subscription.name = rest.name
          if (rest.sentNames) subscription.sentNames = rest.sentNames.names
          if (rest.policy) subscription.policy = rest.policy
          if (automatic !== undefined) subscription.automatic = automatic
          if (status) subscription.status = status
          if (status === SubscriptionStatus.DISABLED) subscription.disabledReason = DisabledReason.OPERATOR
          return { subscription }
        },
        activateSubscriptionSecret({ subscriptionId, secretId }) {
          const subscription = found(subscriptionId)
          for (const secret of subscription.secrets) secret.active = secret.secretId === secretId
          return { subscription }
        },
        sendTestDelivery: ({ subscriptionId }) => ({
          attempt: addAttempt({ subscriptionId, deliveryId: `dlv_test${attempts.length}`, manual: true }),
        }),
        recoverDeliveries: ({ subscriptionId, preview }) =>
          preview ? { count: 7 } : { recovery: { recoveryId: subscriptionId } },
        rotateSubscriptionSecret: ({ subscriptionId }) => ({
          secret: 'whsec_rotatedc2VjcmV0',
          subscription: found(subscriptionId),
        }),
        listDeliveryAttempts: ({ leadId, deliveryId }) => ({
          attempts: attempts.filter((one) => (leadId ? one.leadId === leadId : one.deliveryId === deliveryId)),
        }),
        listDeliveries: ({ statuses, subscriptionId }) => ({
          deliveries: latestOf()
            .filter((one) => statuses.length === 0 || statuses.includes(one.status))
            .filter((one) => !subscriptionId || one.subscriptionId === subscriptionId)
            .map(({ deliveryId, leadId, subscriptionId: id, status, createdAt, updatedAt }, index, all) => ({
              deliveryId,
              leadId,
              subscriptionId: id,
              status,
              createdAt,
              updatedAt,
              latestAttempt: attempts.findLast((one) => one.deliveryId === all[index]!.deliveryId),
            })),
        }),
        createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey }) {
          const known = byKey.get(idempotencyKey)
          if (known) return { attempt: known, existing: true }
          const attempt = addAttempt({ leadId, subscriptionId, deliveryId: `dlv_${attempts.length + 1}`, manual: true })
          byKey.set(idempotencyKey, attempt)
          return { attempt }
        },
        retryDeliveryAttempt({ attemptId, idempotencyKey }) {
          const known = byKey.get(idempotencyKey)
          if (known) return { attempt: known, existing: true }
          const { leadId, subscriptionId, deliveryId } = attempts.find((one) => one.attemptId === attemptId)!
          const attemptNumber = attempts.filter((one) => one.deliveryId === deliveryId).length + 1
          const attempt = addAttempt({ leadId, subscriptionId, deliveryId, attemptNumber, manual: true })
          byKey.set(idempotencyKey, attempt)
          return { attempt }
        },
      })
    },
  }
}
