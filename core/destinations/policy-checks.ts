import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { deliveryEvents } from '../../contract/event-kinds.ts'
import { ServiceError } from '../errors.ts'
import { validate } from '../rules.ts'
import type { WorkspaceStore } from '../workspaces/workspace-store.ts'
import type { LeadSubscription } from './model.ts'
import { defaultPolicy, followsFeed, isHook, type Receives } from './policy-model.ts'
import type { SubscriptionSettings } from './subscription-settings.ts'

/**
 * Throws `PermissionDenied` if the caller may not read everything that a destination receives.
 * Otherwise a caller could send data to a destination of their own.
 */
export function requireReadable(
  { resource, policy = defaultPolicy, mappedFields, automatic }: Omit<Receives, 'sentNames'>,
  { scopes }: { scopes?: ReadonlySet<string> },
) {
  const sendsByItself = isHook({ resource }) || automatic || followsFeed(policy)
  const needed = sendsByItself ? policy.types.map((type) => deliveryEvents[type].scope) : []
  if (mappedFields.length > 0) needed.push('leads:read')
  if (scopes && needed.some((scope) => !scopes.has(scope))) throw new ServiceError(ErrorCode.PERMISSION_DENIED)
}

/** Checks of policies that read what the policy names. */
export function createPolicyChecks({
  workspaceStore,
  endOfFeed,
}: {
  workspaceStore: Pick<WorkspaceStore, 'findInstallations'>
  endOfFeed: (workspaceId: string) => Promise<number>
}) {
  async function requireInstallations(workspaceId: string, { policy }: SubscriptionSettings) {
    const { installations = [] } = policy ?? {}
    if (installations.length === 0) return
    const found = await workspaceStore.findInstallations(installations)
    const known = new Set(found.flatMap((each) => (each.workspaceId === workspaceId ? each.publicSiteKey : [])))
    validate(
      ...installations.map((key, index) =>
        known.has(key) ? undefined : { path: `/policy/installations/${index}`, rule: 'exists' },
      ),
    )
  }

  /**
   * Returns where a destination begins to follow the feed: at its end, so that it gets no earlier
   * events.
   */
  async function beginning({
    workspaceId,
    policy,
    followedTo,
  }: Pick<LeadSubscription, 'workspaceId' | 'policy' | 'followedTo'>) {
    if (!policy || !followsFeed(policy) || followedTo !== undefined) return {}
    return { followedTo: await endOfFeed(workspaceId) }
  }

  return { requireInstallations, beginning }
}
