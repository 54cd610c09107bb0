import { randomUUID } from 'node:crypto'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { parseDestinationUrl } from '../../contract/destination-url.ts'
import type { DeliveryStore } from '../delivery-stores/delivery-store.ts'
import { sealedHeaders } from '../destinations/custom-headers.ts'
import type { IsAllowedDestination } from '../destinations/destination-check.ts'
import type { LeadSubscriptionStore, ListedDestinations } from '../destinations/lead-subscription-store.ts'
import { followersOf, type LiveSubscriptions } from '../destinations/live-subscriptions.ts'
import { auditMax, type LeadSubscription, type SubscriptionAuditEntry } from '../destinations/model.ts'
import { createPolicyChecks, requireReadable } from '../destinations/policy-checks.ts'
import { isHook } from '../destinations/policy-model.ts'
import { sealedDestination } from '../destinations/sealed-destination.ts'
import { changesOf, type SubscriptionSettings, settingIssues } from '../destinations/subscription-settings.ts'
import { invalid, inWorkspace, ServiceError } from '../errors.ts'
import type { PlannedIds } from '../keys/keyring.ts'
import type { SecretBox } from '../keys/secret-box.ts'
import { isShown } from '../keys/shown-secrets.ts'
import { cutPage, readPageToken } from '../page-token.ts'
import { field, integer, validate } from '../rules.ts'
import type { WorkspaceStore } from '../workspaces/workspace-store.ts'
import type { DeliveryHolds } from './delivery-holds.ts'
import {
  activatedSecrets,
  defaultOverlapSeconds,
  liveSecrets,
  maskedSecret,
  newWebhookSecret,
  rotatedSecrets,
} from './webhook-requests.ts'

export interface Requester {
  /** Name that the audit records. */
  subject: string
  /** The only workspace that the caller may access. Absent for every workspace. */
  workspaceId?: string
  /** Absent for the service itself. */
  scopes?: ReadonlySet<string>
}

export interface SubscriptionView {
  subscription: LeadSubscription
  heldDeliveries: number
}

/** The subscription and the id of its new secret, which `LeadSubscriptions.secret` returns at each repeat. */
type CreatedSecret = SubscriptionView & { secretId: string }

/** Manages lead subscriptions. A write that is repeated with the same operation name changes nothing. */
export interface LeadSubscriptions {
  /**
   * Creates a subscription or a hook with one secret. Errors: `NotFound` if the workspace does not
   * exist; `ValidationFailed`, with the rule `maxItems` if the workspace has its maximum number already;
   * `PermissionDenied` if the caller may not read the events of a hook.
   */
  create(
    settings: Omit<SubscriptionSettings, 'status'> &
      Required<Pick<SubscriptionSettings, 'destinationUrl' | 'mappedFields' | 'automatic'>> & {
        workspaceId: string
      } & Pick<LeadSubscription, 'resource' | 'sentAs'>,
    by: Requester,
    operation?: string,
  ): Promise<CreatedSecret>
  /**
   * Sets only the given fields. If the destination moves to another origin, removes the custom
   * headers whose values are not given, because they belong to the previous origin. Errors:
   * `SubscriptionNotFound`, `ValidationFailed`, `PermissionDenied` as for `create`.
   */
  update(
    subscriptionId: string,
    settings: SubscriptionSettings,
    by: Requester,
    operation?: string,
  ): Promise<SubscriptionView>
  /**
   * Adds a secret. For `overlapSeconds` more seconds, `webhook-signature` also contains a signature
   * with the previous secret. `X-Service-Webhook-Signature` is still signed with the previous
   * secret until the new one is activated or the overlap ends. Errors: `SubscriptionNotFound`,
   * `ValidationFailed`, `RateLimited` while requests are signed with too many secrets.
   */
  rotateSecret(
    subscriptionId: string,
    overlapSeconds: number | undefined,
    by: Requester,
    operation?: string,
  ): Promise<CreatedSecret>
  /**
   * Activates a rotated secret. The newest activated secret signs `X-Service-Webhook-Signature`.
   * Activating it again changes nothing. Errors: `SubscriptionNotFound`, `NotFound` if the secret
   * is unknown or has expired.
   */
  activateSecret(subscriptionId: string, secretId: string, by: Requester, operation?: string): Promise<SubscriptionView>
  /**
   * Returns the plain text of a secret that signs requests now and was created in the last ten
   * minutes. Returns the masked text of an older one. Errors: `IdempotencyConflict` if the secret has
   * expired.
   */
  secret(subscription: LeadSubscription, secretId: string): string
  /** Returns a subscription with its audit, newest entry first. Errors: `SubscriptionNotFound`. */
  get(subscriptionId: string, by: Requester): Promise<SubscriptionView & { audit: SubscriptionAuditEntry[] }>
  /** Returns a page, newest first. Errors: `ValidationFailed`. */
  list(query: {
    workspaceId: string
    listed: ListedDestinations
    limit?: number
    pageToken?: string
  }): Promise<{ page: SubscriptionView[]; nextPageToken?: string }>
}

const maxPage = 100

export function createLeadSubscriptions(dependencies: {
  store: LeadSubscriptionStore
  deliveries: Pick<DeliveryStore, 'requests'>
  holds: Pick<DeliveryHolds, 'applyStatus' | 'heldCounts'>
  liveSubscriptions: Pick<LiveSubscriptions, 'changed'>
  workspaceStore: Pick<WorkspaceStore, 'findWorkspace' | 'findInstallations'>
  /** Returns the number of the last entry of a workspace's event feed. */
  endOfFeed: (workspaceId: string) => Promise<number>
  secretBox: SecretBox
  plannedIds: PlannedIds
  isAllowedDestination: IsAllowedDestination
  /** Maximum numbers of a workspace. */
  limits: { hooks: number; leadSubscriptions: number }
  now: () => number
}): LeadSubscriptions {
  const { store, deliveries, holds, liveSubscriptions, workspaceStore, limits, now } = dependencies
  const { requireInstallations, beginning } = createPolicyChecks(dependencies)
  const { secretBox, plannedIds, isAllowedDestination } = dependencies

  async function find(subscriptionId: string, { workspaceId }: Requester): Promise<LeadSubscription> {
    const [found] = await store.find([subscriptionId])
    return inWorkspace(found, workspaceId, ErrorCode.SUBSCRIPTION_NOT_FOUND)
  }

  async function view(subscriptionId: string, by: Requester): Promise<SubscriptionView> {
    const [subscription, counts] = await Promise.all([find(subscriptionId, by), holds.heldCounts([subscriptionId])])
    return { subscription, heldDeliveries: counts.get(subscriptionId) ?? 0 }
  }

  async function requirePublicDestination({ destinationUrl }: SubscriptionSettings) {
    const url = destinationUrl === undefined ? undefined : parseDestinationUrl(destinationUrl)
    if (url && !(await isAllowedDestination(url))) {
      throw invalid('/destinationUrl', 'publicAddress')
    }
  }

  return {
    async create(
      { workspaceId, destinationUrl, headers = [], resource, sentAs, ...rest },
      by,
      operation = randomUUID(),
    ) {
      if (by.workspaceId !== undefined && by.workspaceId !== workspaceId) throw new ServiceError(ErrorCode.NOT_FOUND)
      if (!(await workspaceStore.findWorkspace(workspaceId))) throw new ServiceError(ErrorCode.NOT_FOUND)
      const { mappedFields, sentNames, automatic, policy, maxPerSecond, disableAfterNotFound, workflow } = rest
      const settings = { ...rest, destinationUrl, headers }
      validate(...settingIssues(settings, { resource }))
      requireReadable({ resource, policy, mappedFields, automatic }, by)
      await requireInstallations(workspaceId, settings)
      await requirePublicDestination(settings)
      const at = new Date(now())
      const subscriptionId = plannedIds(resource === undefined || sentAs ? 'sub' : resource, operation)
      const secretId = plannedIds('key', operation)
      const subscription: LeadSubscription = {
        subscriptionId,
        workspaceId,
        destination: sealedDestination(secretBox, destinationUrl),
        mappedFields,
        sentNames,
        automatic,
        policy,
        resource,
        sentAs,
        ...(await beginning({ workspaceId, policy })),
        maxPerSecond,
        disableAfterNotFound,
        workflow,
        status: 'enabled',
        secrets: [newWebhookSecret(secretBox, at, secretId).kept],
        headers: sealedHeaders(secretBox, headers, []),
        notFound: [],
        judgedSince: at,
        audit: [{ at, actor: by.subject, action: 'created' }],
        createdAt: at,
        updatedAt: at,
      }
      const max = isHook(subscription) ? limits.hooks : limits.leadSubscriptions
      if (!(await store.insert(subscription, max))) throw invalid('/destinationUrl', 'maxItems')
      await liveSubscriptions.changed(followersOf(workspaceId))
      return { ...(await view(subscriptionId, by)), secretId }
    },

    async update(subscriptionId, settings, by, operation = randomUUID()) {
      let stored = await find(subscriptionId, by)
      validate(...settingIssues(settings, stored))
      requireReadable({ ...stored, ...settings }, by)
      await requireInstallations(stored.workspaceId, settings)
      await requirePublicDestination(settings)
      const { status, ...given } = settings
      const changed = { ...given, ...(await beginning({ ...stored, policy: settings.policy })) }
      const entry = { at: new Date(now()), actor: by.subject }
      // If a try fails, another write changed destination or headers first. Its headers may belong to
      // another origin, so they are checked again.
      const tryOnce = (read: LeadSubscription) => {
        validate(...settingIssues(settings, read))
        requireReadable({ ...read, ...settings }, by)
        const updated = { ...entry, action: 'updated' as const }
        return store.update(read, changesOf(secretBox, changed, read, entry.at), updated, `${operation} settings`)
      }
      if (Object.keys(changed).length > 0) while (!(await tryOnce(stored))) stored = await find(subscriptionId, by)
      const statusOperation = `${operation} status`
      if (status === 'enabled') await store.enable(subscriptionId, { ...entry, action: 'enabled' }, statusOperation)
      if (status === 'disabled') {
        const disabled = { ...entry, action: 'disabled' as const, disabledReason: 'operator' as const }
        await store.disable(subscriptionId, 'operator', disabled, { operation: statusOperation })
      }
      await liveSubscriptions.changed(subscriptionId, followersOf(stored.workspaceId))
      // If this process crashes before this line, `DeliveryHolds.reconcile` updates the deliveries.
      if (status) await holds.applyStatus(subscriptionId)
      return view(subscriptionId, by)
    },

    async rotateSecret(subscriptionId, overlapSeconds = defaultOverlapSeconds, by, operation = randomUUID()) {
      let subscription = await find(subscriptionId, by)
      validate(field('/overlapSeconds', overlapSeconds, integer(0, 7 * defaultOverlapSeconds)))
      const seen = subscription.secrets
      const secretId = plannedIds('key', operation)
      // If a try fails, another write changed the secrets first.
      const tryOnce = (read: LeadSubscription) => {
        const at = new Date(now())
        const { kept } = newWebhookSecret(secretBox, at, secretId)
        const secrets = rotatedSecrets(read.secrets, kept, { seen, overlapSeconds })
        return store.replaceSecrets(read, secrets, { at, actor: by.subject, action: 'secret_rotated' }, operation)
      }
      while (!(await tryOnce(subscription))) subscription = await find(subscriptionId, by)
      await liveSubscriptions.changed(subscriptionId)
      return { ...(await view(subscriptionId, by)), secretId }
    },

    async activateSecret(subscriptionId, secretId, by, operation = randomUUID()) {
      for (;;) {
        const subscription = await find(subscriptionId, by)
        const at = new Date(now())
        const secret = liveSecrets(subscription.secrets, at).find((each) => each.secretId === secretId)
        if (!secret) throw new ServiceError(ErrorCode.NOT_FOUND)
        const secrets = activatedSecrets(subscription.secrets, secretId)
        const entry = { at, actor: by.subject, action: 'secret_activated' as const }
        if (!secret.pending || (await store.replaceSecrets(subscription, secrets, entry, operation))) break
      }
      await liveSubscriptions.changed(subscriptionId)
      return view(subscriptionId, by)
    },

    secret({ secrets }, secretId) {
      const at = new Date(now())
      const found = liveSecrets(secrets, at).find((secret) => secret.secretId === secretId)
      if (!found) throw new ServiceError(ErrorCode.IDEMPOTENCY_CONFLICT)
      return isShown(found.createdAt, at) ? secretBox.open(found.sealed) : maskedSecret(found)
    },

    async get(subscriptionId, by) {
      const [found, requests] = await Promise.all([
        view(subscriptionId, by),
        deliveries.requests(subscriptionId, auditMax),
      ])
      const audit = [...found.subscription.audit, ...requests].sort((a, b) => b.at.getTime() - a.at.getTime())
      return { ...found, audit: audit.slice(0, auditMax) }
    },

    async list({ workspaceId, listed, limit = maxPage, pageToken }) {
      validate(field('/limit', limit, integer(1, maxPage)))
      const place = `${listed} ${workspaceId}`
      const found = await store.list(workspaceId, listed, limit + 1, readPageToken(place, pageToken))
      const { page, nextPageToken } = cutPage(found, limit, place, ({ createdAt: at, subscriptionId: id }) => ({
        at,
        id,
      }))
      const counts = await holds.heldCounts(page.map(({ subscriptionId }) => subscriptionId))
      const heldBy = (id: string) => ({ heldDeliveries: counts.get(id) ?? 0 })
      return {
        page: page.map((subscription) => ({ subscription, ...heldBy(subscription.subscriptionId) })),
        nextPageToken,
      }
    },
  }
}
