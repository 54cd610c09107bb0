import type { ConnectRouter } from '@connectrpc/connect'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { HookSchema, HookService } from '#proto/hook/v1/hook_pb.js'
import type { DeliveryEventType } from '../../../contract/event-kinds.ts'
import type { Core } from '../../core.ts'
import { defaultPolicy, isHook } from '../../deliveries/subscription-model.ts'
import { getSubscription, type SubscriptionView } from '../../deliveries/subscriptions.ts'
import { ServiceError } from '../../errors.ts'
import { callerOf } from '../../transport/caller.ts'
import { operatorDeletion } from '../policy-changes.ts'
import { toProto } from '../proto-values.ts'
import { destinationCalls, destinationSettings, toDestination } from './subscription-calls.ts'

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
      if (found && !isHook(found.subscription)) throw new ServiceError(ErrorCode.SUBSCRIPTION_NOT_FOUND)
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
  if (!(error instanceof ServiceError) || error.code !== ErrorCode.SUBSCRIPTION_NOT_FOUND) throw error
}

/** The event types are checked together with the other settings. */
const policyOf = (types: string[]) => ({ ...defaultPolicy, types: types as DeliveryEventType[] })

function toHook(view: SubscriptionView, at: Date) {
  const { subscriptionId: hookId, policy } = view.subscription
  const shown = { ...view.subscription, ...toDestination(view, at), hookId, eventTypes: policy?.types }
  return { hook: toProto(HookSchema, shown) }
}
