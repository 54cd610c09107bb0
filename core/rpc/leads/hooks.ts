import type { ConnectRouter } from '@connectrpc/connect'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { HookSchema, HookService } from '#proto/hook/v1/hook_pb.js'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import type { DeliveryEventType } from '../../../contract/event-kinds.ts'
import type { Core } from '../../core.ts'
import { defaultPolicy, isHook } from '../../deliveries/subscription-model.ts'
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
import { ServiceError } from '../../errors.ts'
import { callerOf, operatorWrites, requiredWorkspace } from '../../transport/caller.ts'
import { operatorDeletion } from '../policy-changes.ts'
import { nameOf, toProto } from '../proto-values.ts'
import { toAudit, toDestination } from './subscription-calls.ts'

export function hookService(router: ConnectRouter, core: Core): void {
  const { now } = core
  const once = operatorWrites(core)
  const deletion = operatorDeletion(core)

  /** Returns a hook with its audit. Errors: `SubscriptionNotFound`, also for a lead subscription. */
  async function get(hookId: string, by: Requester) {
    const found = await getSubscription(core, hookId, by)
    if (!isHook(found.subscription)) throw new ServiceError(ErrorCode.SUBSCRIPTION_NOT_FOUND)
    return found
  }

  const show = async (hookId: string, by: Requester) => ({ hook: toHook(await get(hookId, by), new Date(now())) })

  /** Returns the hook's current state and the secret that a write created. */
  async function withSecret({ hookId, secretId }: { hookId: string; secretId: string }, by: Requester) {
    const { subscription } = await get(hookId, by)
    return { secret: showSecret(core, subscription, secretId), ...(await show(hookId, by)) }
  }

  router.service(HookService, {
    async createHook(request, context) {
      const { workspaceId: named, destinationUrl, eventTypes, name, headers, ...rest } = request
      const by = callerOf(context)
      const workspaceId = requiredWorkspace(context, named)
      const made = await once(context, request, async (operation) => {
        const { maxPerSecond, disableAfterNotFound } = rest
        const limits = { name, headers, maxPerSecond, disableAfterNotFound }
        const unused = { mappedFields: [], automatic: false }
        const settings = { workspaceId, destinationUrl, policy: policyOf(eventTypes), ...limits, ...unused }
        const created = await createSubscription(core, { ...settings, resource: 'hook' }, by, operation)
        return { hookId: created.subscription.subscriptionId, secretId: created.secretId }
      })
      return { hookId: made.hookId, ...(await withSecret(made, by)) }
    },

    async updateHook(request, context) {
      const { hookId, destinationUrl, eventTypes, name, status, headers, maxPerSecond, disableAfterNotFound } = request
      const by = callerOf(context)
      const named = nameOf(SubscriptionStatus, status)
      const settings = {
        ...(destinationUrl === undefined ? {} : { destinationUrl }),
        ...(name === undefined ? {} : { name }),
        ...(eventTypes && { policy: policyOf(eventTypes.types) }),
        ...(named && { status: named }),
        ...(headers && { headers: headers.headers }),
        ...(maxPerSecond === undefined ? {} : { maxPerSecond }),
        ...(disableAfterNotFound === undefined ? {} : { disableAfterNotFound }),
      }
      await once(context, request, async (operation) => {
        await get(hookId, by)
        await updateSubscription(core, hookId, settings, by, operation)
        return { hookId }
      })
      return show(hookId, by)
    },

    async rotateHookSecret(request, context) {
      const { hookId, overlapSeconds } = request
      const by = callerOf(context)
      const { secretId } = await once(context, request, async (operation) => {
        await get(hookId, by)
        return { secretId: (await rotateSecret(core, hookId, overlapSeconds, by, operation)).secretId }
      })
      return withSecret({ hookId, secretId }, by)
    },

    async activateHookSecret(request, context) {
      const { hookId, secretId } = request
      const by = callerOf(context)
      await once(context, request, async (operation) => {
        await get(hookId, by)
        await activateSecret(core, hookId, secretId, by, operation)
        return { hookId }
      })
      return show(hookId, by)
    },

    async deleteHook(request, context) {
      // An unknown id may belong to a hook that an earlier call has deleted.
      const found = await getSubscription(core, request.hookId, callerOf(context)).catch(ifUnknown)
      if (found && !isHook(found.subscription)) throw new ServiceError(ErrorCode.SUBSCRIPTION_NOT_FOUND)
      return deletion(context, request, 'subscription', request.hookId)
    },

    async getHook({ hookId }, context) {
      const found = await get(hookId, callerOf(context))
      return { hook: toHook(found, new Date(now())), audit: found.audit.map(toAudit) }
    },

    async listHooks({ workspaceId: named, limit, pageToken }, context) {
      const workspaceId = requiredWorkspace(context, named)
      const query = { workspaceId, listed: 'hooks' as const, limit, pageToken: pageToken || undefined }
      const { page, nextPageToken } = await listSubscriptions(core, query)
      return { hooks: page.map((view) => toHook(view, new Date(now()))), nextPageToken }
    },
  })
}

function ifUnknown(error: unknown): undefined {
  if (!(error instanceof ServiceError) || error.code !== ErrorCode.SUBSCRIPTION_NOT_FOUND) throw error
}

/** Does not check the event types. They are checked together with the other settings. */
const policyOf = (types: string[]) => ({ ...defaultPolicy, types: types as DeliveryEventType[] })

function toHook(view: SubscriptionView, at: Date) {
  const { subscriptionId, policy } = view.subscription
  return toProto(HookSchema, { ...toDestination(view, at), hookId: subscriptionId, eventTypes: policy?.types })
}
