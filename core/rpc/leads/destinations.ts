import type { Message } from '@bufbuild/protobuf'
import type { ConnectRouter, HandlerContext, ServiceImpl } from '@connectrpc/connect'
import { HookSchema, HookService, type ListHooksRequest, type UpdateHookRequest } from '#proto/hook/v1/hook_pb.js'
import type { LeadService } from '#proto/lead/v1/lead_pb.js'
import {
  type EventPolicy as EventPolicyMessage,
  type ListSubscriptionsRequest,
  SubscriptionAuditSchema,
  SubscriptionPurpose,
  SubscriptionSchema,
  SubscriptionStatus,
  type UpdateSubscriptionRequest,
  type Workflow as WorkflowMessage,
} from '#proto/lead/v1/subscription_pb.js'
import type { DeliveryEventType } from '../../../contract/event-kinds.ts'
import { type Core, dateOf } from '../../core.ts'
import {
  defaultDisableAfterNotFound,
  defaultPolicy,
  type EventPolicy,
  isHook,
  operationalEvents,
  type Workflow,
} from '../../deliveries/subscription-model.ts'
import { maskedDestination, type SubscriptionSettings, sentNamesOf } from '../../deliveries/subscription-settings.ts'
import {
  activateSecret,
  createSubscription,
  getSubscription,
  type ListedDestinations,
  listSubscriptions,
  type Requester,
  rotateSecret,
  type SubscriptionView,
  showSecret,
  updateSubscription,
} from '../../deliveries/subscriptions.ts'
import { activeSecret, liveSecrets, maskedSecret } from '../../deliveries/webhook-requests.ts'
import { ServiceError } from '../../errors.ts'
import { callerOf, operatorWrites, requiredWorkspace } from '../../transport/caller.ts'
import { operatorDeletion } from '../policy-changes.ts'
import { fieldsOf, given, nameOf, toProto } from '../proto-values.ts'

type Write = Message & { idempotencyKey?: string }

/**
 * Returns the calls that exist for lead subscriptions and for hooks. `toAnswer` makes the answer of a call,
 * which names its destination `subscription` or `hook`.
 */
function destinationCalls<Answer>(
  core: Core,
  listed: ListedDestinations,
  toAnswer: (view: SubscriptionView, at: Date) => Answer,
) {
  const once = operatorWrites(core)
  const show = (view: SubscriptionView) => toAnswer(view, dateOf(core))

  /** Errors: `SubscriptionNotFound`, also for a lead subscription that is called as a hook. */
  async function get(id: string, by: Requester) {
    const found = await getSubscription(core, id, by)
    if (listed === 'hooks' && !isHook(found.subscription)) throw new ServiceError('SubscriptionNotFound')
    return found
  }

  /** Returns the destination with the secret that a write created. */
  async function withSecret(id: string, secretId: string, by: Requester) {
    const found = await get(id, by)
    return { secret: showSecret(core, found.subscription, secretId), ...show(found) }
  }

  const write = <R>(
    request: Write,
    context: HandlerContext,
    id: string,
    run: (by: Requester, operation: string) => Promise<R>,
  ) =>
    once(context, request, async (operation) => {
      const by = callerOf(context)
      if (listed === 'hooks') await get(id, by)
      return run(by, operation)
    })

  return {
    async create(
      request: Write & { workspaceId: string },
      context: HandlerContext,
      settings: Omit<Parameters<typeof createSubscription>[1], 'workspaceId'>,
    ) {
      const by = callerOf(context)
      const wanted = { ...settings, workspaceId: requiredWorkspace(context, request.workspaceId) }
      const { subscriptionId, secretId } = await once(context, request, (operation) =>
        createSubscription(core, wanted, by, operation),
      )
      return { subscriptionId, ...(await withSecret(subscriptionId, secretId, by)) }
    },

    async update(request: Write, context: HandlerContext, id: string, settings: SubscriptionSettings) {
      await write(request, context, id, (...how) => updateSubscription(core, id, given(settings), ...how))
      return show(await get(id, callerOf(context)))
    },

    async rotate(request: Write & { overlapSeconds?: number }, context: HandlerContext, id: string) {
      const { secretId } = await write(request, context, id, (...how) =>
        rotateSecret(core, id, request.overlapSeconds, ...how),
      )
      return withSecret(id, secretId, callerOf(context))
    },

    async activate(request: Write & { secretId: string }, context: HandlerContext, id: string) {
      await write(request, context, id, (...how) => activateSecret(core, id, request.secretId, ...how))
      return show(await get(id, callerOf(context)))
    },

    async read(id: string, context: HandlerContext) {
      const found = await get(id, callerOf(context))
      return { ...show(found), audit: found.audit.map((entry) => toProto(SubscriptionAuditSchema, entry)) }
    },

    async list(
      { workspaceId, limit, pageToken }: ListHooksRequest | ListSubscriptionsRequest,
      context: HandlerContext,
    ) {
      const of = { workspaceId: requiredWorkspace(context, workspaceId), listed }
      const { page, nextPageToken } = await listSubscriptions(core, { ...of, limit, pageToken })
      return { shown: page.map(show), nextPageToken }
    },
  }
}

export function subscriptionCalls(core: Core) {
  const deletion = operatorDeletion(core)
  const calls = destinationCalls(core, 'subscriptions', toSubscription)

  return {
    createSubscription(request, context) {
      const isOperational = request.purpose === SubscriptionPurpose.OPERATIONAL_EVENTS
      return calls.create(request, context, {
        ...request,
        policy: fromPolicy(request.policy),
        workflow: fromWorkflow(request.workflow),
        ...(isOperational && { resource: 'hook' as const, ...operationalEvents }),
      })
    },

    updateSubscription(request, context) {
      const { subscriptionId, mappedFields, sentNames, policy, workflow, automatic } = request
      return calls.update(request, context, subscriptionId, {
        ...destinationSettings(request),
        mappedFields: mappedFields?.names,
        sentNames: sentNames?.names,
        automatic,
        policy: fromPolicy(policy),
        workflow: fromWorkflow(workflow),
      })
    },

    rotateSubscriptionSecret: (request, context) => calls.rotate(request, context, request.subscriptionId),

    activateSubscriptionSecret: (request, context) => calls.activate(request, context, request.subscriptionId),

    deleteSubscription: (request, context) => deletion(context, request, 'subscription', request.subscriptionId),

    getSubscription: ({ subscriptionId }, context) => calls.read(subscriptionId, context),

    async listSubscriptions(query, context) {
      const { shown, nextPageToken } = await calls.list(query, context)
      return { subscriptions: shown.map(({ subscription }) => subscription), nextPageToken }
    },
  } satisfies Partial<ServiceImpl<typeof LeadService>>
}

/** The settings of an update. Undefined settings stay unchanged. */
function destinationSettings(request: UpdateHookRequest | UpdateSubscriptionRequest) {
  const { destinationUrl, name, status, headers, maxPerSecond, disableAfterNotFound } = request
  const same = { destinationUrl, name, maxPerSecond, disableAfterNotFound }
  return { ...same, status: nameOf(SubscriptionStatus, status), headers: headers?.headers }
}

/** The word in `when` is checked with the other settings. */
const fromWorkflow = (workflow: WorkflowMessage | undefined) => workflow && (fieldsOf(workflow) as Workflow)

/** The words are checked with the other settings. */
const fromPolicy = (policy: EventPolicyMessage | undefined) =>
  policy && ({ ...fieldsOf(policy), ...(policy.types.length === 0 && { types: defaultPolicy.types }) } as EventPolicy)

/** Returns the shown fields of a destination that differ from the stored ones. */
function toDestination({ subscription, heldDeliveries }: SubscriptionView, at: Date) {
  const { maxPerSecond, secrets, headers = [], disableAfterNotFound = defaultDisableAfterNotFound } = subscription
  const activeId = activeSecret(secrets, at)?.secretId
  return {
    destinationUrl: maskedDestination(subscription),
    maxPerSecond: maxPerSecond || undefined,
    secrets: liveSecrets(secrets, at).map((secret) => ({
      ...secret,
      masked: maskedSecret(secret),
      active: secret.secretId === activeId,
    })),
    headers: headers.map(({ name }) => ({ name, masked: '••••' })),
    disableAfterNotFound,
    heldDeliveries,
  }
}

function toSubscription(view: SubscriptionView, at: Date) {
  const { mappedFields, sentNames, policy = defaultPolicy, workflow } = view.subscription
  const subscription = toProto(SubscriptionSchema, {
    ...view.subscription,
    ...toDestination(view, at),
    sentNames: sentNamesOf(sentNames, mappedFields),
    policy,
    purpose: isHook(view.subscription) ? 'operational_events' : 'leads',
    workflow: workflow?.workflowId ? workflow : undefined,
  })
  return { subscription }
}

export function hookService(router: ConnectRouter, core: Core) {
  const deletion = operatorDeletion(core)
  const calls = destinationCalls(core, 'hooks', toHook)

  router.service(HookService, {
    async createHook(request, context) {
      const unused = { mappedFields: [], automatic: false }
      const settings = { ...request, ...unused, policy: policyOf(request.eventTypes), resource: 'hook' as const }
      const { subscriptionId: hookId, ...made } = await calls.create(request, context, settings)
      return { hookId, ...made }
    },

    updateHook(request, context) {
      const { hookId, eventTypes } = request
      const policy = eventTypes && policyOf(eventTypes.types)
      return calls.update(request, context, hookId, { ...destinationSettings(request), policy })
    },

    rotateHookSecret: (request, context) => calls.rotate(request, context, request.hookId),

    activateHookSecret: (request, context) => calls.activate(request, context, request.hookId),

    async deleteHook(request, context) {
      // An unknown id may belong to a hook that an earlier call has deleted.
      const found = await getSubscription(core, request.hookId, callerOf(context)).catch(ifUnknown)
      if (found && !isHook(found.subscription)) throw new ServiceError('SubscriptionNotFound')
      return deletion(context, request, 'subscription', request.hookId)
    },

    getHook: ({ hookId }, context) => calls.read(hookId, context),

    async listHooks(query, context) {
      const { shown, nextPageToken } = await calls.list(query, context)
      return { hooks: shown.map(({ hook }) => hook), nextPageToken }
    },
  })
}

function ifUnknown(error: unknown): undefined {
  if (!(error instanceof ServiceError) || error.code !== 'SubscriptionNotFound') throw error
}

/** The event types are checked together with the other settings. */
const policyOf = (types: string[]) => ({ ...defaultPolicy, types: types as DeliveryEventType[] })

function toHook(view: SubscriptionView, at: Date) {
  const { subscriptionId: hookId, policy } = view.subscription
  const shown = { ...view.subscription, ...toDestination(view, at), hookId, eventTypes: policy?.types }
  return { hook: toProto(HookSchema, shown) }
}
