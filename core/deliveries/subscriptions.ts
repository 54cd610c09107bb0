import { randomInt, randomUUID } from 'node:crypto'
import type { Filter } from 'mongodb'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { parseDestinationUrl } from '../../contract/destination-url.ts'
import type { Core } from '../core.ts'
import { invalid, inWorkspace, ServiceError } from '../errors.ts'
import { isShown } from '../keys/shown-secrets.ts'
import { announceMarked } from '../leads/leads.ts'
import { insertOnce } from '../mongodb/insert-each.ts'
import { isRecorded, recording, unlessRecorded } from '../mongodb/recorded-operations.ts'
import { readPage } from '../page-token.ts'
import { field, integer, validate } from '../rules.ts'
import { workspaceStoreOf } from '../workspaces/workspace-store.ts'
import { findWorkspace } from '../workspaces/workspaces.ts'
import { applyStatus, heldCounts } from './holds.ts'
import { findSubscriptions, followersOf, liveSubscriptionsOf, notDeleted } from './live-subscriptions.ts'
import type { DeliveryAttempt } from './model.ts'
import {
  auditMax,
  type DisabledReason,
  followsFeed,
  isHook,
  type LeadSubscription,
  type LeadSubscriptionDocument,
  type SubscriptionAuditEntry,
  toSubscription,
  type WebhookSecret,
} from './subscription-model.ts'
import {
  changesOf,
  requireReadable,
  type SubscriptionSettings,
  sealedDestination,
  sealedHeaders,
  settingIssues,
} from './subscription-settings.ts'
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

/** The subscription and the id of its new secret, which `showSecret` returns at each repeat. */
type CreatedSecret = SubscriptionView & { secretId: string }

export type ListedDestinations = 'hooks' | 'subscriptions'

const isListedAs: Record<ListedDestinations, Filter<LeadSubscriptionDocument>> = {
  hooks: { resource: 'hook' },
  subscriptions: { $or: [{ resource: { $exists: false } }, { sentAs: { $exists: true } }] },
}

const maxPage = 100
/** Maximum number of notices per subscription that wait for their deliveries. */
export const noticesMax = 100
export const noFailures = { failingSince: '', deadLettersSince: '' } as const

const audited = (entry: SubscriptionAuditEntry) => ({ audit: { $each: [entry], $position: 0, $slice: auditMax } })

/** Returns the number of the last entry of a workspace's event feed; 0 if the feed is empty. */
export async function endOfFeed({ db }: Core, workspaceId: string): Promise<number> {
  // No failover rolls back what this reads, so no number is read and then given again.
  const committed = { readConcern: { level: 'majority' }, projection: { _id: 0, number: 1 } } as const
  const newest = db.feedEntries.find({ workspaceId }, committed).sort({ number: -1 }).limit(1)
  return (await newest.toArray())[0]?.number ?? 0
}

/** Returns a subscription. Errors: `SubscriptionNotFound`. */
export async function findSubscription(
  core: Core,
  subscriptionId: string,
  { workspaceId }: Requester,
): Promise<LeadSubscription> {
  const [found] = await findSubscriptions(core, [subscriptionId])
  return inWorkspace(found, workspaceId, ErrorCode.SUBSCRIPTION_NOT_FOUND)
}

async function viewSubscription(core: Core, subscriptionId: string, by: Requester): Promise<SubscriptionView> {
  const [subscription, counts] = await Promise.all([
    findSubscription(core, subscriptionId, by),
    heldCounts(core, [subscriptionId]),
  ])
  return { subscription, heldDeliveries: counts.get(subscriptionId) ?? 0 }
}

/**
 * Creates a subscription or a hook with one secret. A repeat with the same operation name changes
 * nothing, like those of the writes below. Errors: `NotFound` if the workspace does not
 * exist; `ValidationFailed`, with the rule `maxItems` if the workspace has its maximum number already;
 * `PermissionDenied` if the caller may not read the events of a hook.
 */
export async function createSubscription(
  core: Core,
  {
    workspaceId,
    destinationUrl,
    headers = [],
    resource,
    sentAs,
    ...rest
  }: Omit<SubscriptionSettings, 'status'> &
    Required<Pick<SubscriptionSettings, 'destinationUrl' | 'mappedFields' | 'automatic'>> & {
      workspaceId: string
    } & Pick<LeadSubscription, 'resource' | 'sentAs'>,
  by: Requester,
  operation: string = randomUUID(),
): Promise<CreatedSecret> {
  const { secretBox, plannedIds, config } = core
  if (by.workspaceId !== undefined && by.workspaceId !== workspaceId) throw new ServiceError(ErrorCode.NOT_FOUND)
  await findWorkspace(core, workspaceId)
  const { name, mappedFields, sentNames, automatic, policy, maxPerSecond, disableAfterNotFound, workflow } = rest
  const settings = { ...rest, destinationUrl, headers }
  validate(...settingIssues(settings, { resource }))
  requireReadable({ resource, policy, mappedFields, automatic }, by)
  await requireInstallations(core, workspaceId, settings)
  await requirePublicDestination(core, settings)
  const at = new Date(core.now())
  const subscriptionId = plannedIds(resource === undefined || sentAs ? 'sub' : resource, operation)
  const secretId = plannedIds('key', operation)
  const subscription: LeadSubscription = {
    subscriptionId,
    workspaceId,
    destination: sealedDestination(secretBox, destinationUrl),
    name,
    mappedFields,
    sentNames,
    automatic,
    policy,
    resource,
    sentAs,
    ...(await beginningOf(core, { workspaceId, policy })),
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
  const max = isHook(subscription) ? config.EVENT_HOOKS_MAX : config.LEAD_SUBSCRIPTIONS_MAX
  if (!(await insertSubscription(core, subscription, max))) throw invalid('/destinationUrl', 'maxItems')
  await liveSubscriptionsOf(core).changed(followersOf(workspaceId))
  return { ...(await viewSubscription(core, subscriptionId, by)), secretId }
}

/**
 * Inserts a subscription. Changes nothing if the subscription exists. Returns false if the workspace
 * has `max` hooks, or lead subscriptions, already.
 */
async function insertSubscription(
  { db: { leadSubscriptions } }: Core,
  { subscriptionId, ...rest }: LeadSubscription,
  max: number,
) {
  const places = Array.from({ length: max }, (_, n) => `${isHook(rest) ? 'hook' : 'leads'} ${n}`)
  const placed = { workspaceId: rest.workspaceId, place: { $exists: true } }
  // If a try fails, a parallel call took the place, or inserted the same subscription.
  for (;;) {
    const present = await leadSubscriptions
      .find({ $or: [{ _id: subscriptionId }, placed] }, { projection: { place: 1 } })
      .toArray()
    if (present.some(({ _id }) => _id === subscriptionId)) return true
    const taken = new Set(present.map(({ place }) => place))
    const free = places.filter((place) => !taken.has(place))
    if (free.length === 0) return false
    const place = free[randomInt(free.length)]
    if (await insertOnce(leadSubscriptions, { _id: subscriptionId, ...rest, place })) return true
  }
}

/**
 * Sets only the given fields. If the destination moves to another origin, removes the custom
 * headers whose values are not given, because they belong to the previous origin. Errors:
 * `SubscriptionNotFound`, `ValidationFailed`, `PermissionDenied` as for `createSubscription`.
 */
export async function updateSubscription(
  core: Core,
  subscriptionId: string,
  settings: SubscriptionSettings,
  by: Requester,
  operation: string = randomUUID(),
): Promise<SubscriptionView> {
  let stored = await findSubscription(core, subscriptionId, by)
  validate(...settingIssues(settings, stored))
  requireReadable({ ...stored, ...settings }, by)
  await requireInstallations(core, stored.workspaceId, settings)
  await requirePublicDestination(core, settings)
  const { status, ...given } = settings
  const changed = { ...given, ...(await beginningOf(core, { ...stored, policy: settings.policy })) }
  const entry = { at: new Date(core.now()), actor: by.subject }
  // If a try fails, another write changed destination or headers first. Its headers may belong to
  // another origin, so they are checked again.
  const tryOnce = (read: LeadSubscription) => {
    validate(...settingIssues(settings, read))
    requireReadable({ ...read, ...settings }, by)
    const changes = changesOf(core.secretBox, changed, read, entry.at)
    const { destination, headers = { $exists: false } } = read
    return writeAudited(
      core,
      subscriptionId,
      changes.destination || changes.headers ? { destination, headers } : {},
      {
        $set: { ...changes, notFound: changes.judgedSince && [] },
        $unset: changes.judgedSince && noFailures,
      },
      { ...entry, action: 'updated' },
      `${operation} settings`,
    )
  }
  if (Object.keys(changed).length > 0)
    while (!(await tryOnce(stored))) stored = await findSubscription(core, subscriptionId, by)
  const statusOperation = `${operation} status`
  if (status === 'enabled')
    await enableSubscription(core, subscriptionId, { ...entry, action: status }, statusOperation)
  if (status === 'disabled') {
    const disabled = { ...entry, action: status, disabledReason: 'operator' as const }
    await disableSubscription(core, subscriptionId, 'operator', disabled, { operation: statusOperation })
  }
  await liveSubscriptionsOf(core).changed(subscriptionId, followersOf(stored.workspaceId))
  // If this process crashes before this line, `reconcileHolds` updates the deliveries. A recovery waits
  // while its subscription is disabled.
  if (status) await applyStatus(core, subscriptionId).finally(() => core.bus.emit('due', 'recover deliveries'))
  return viewSubscription(core, subscriptionId, by)
}

/**
 * Writes changes and their audit entry if the subscription still matches `unchanged`. Returns false if
 * it does not. Changes nothing, and returns true, if the operation is already recorded.
 */
async function writeAudited(
  { db: { leadSubscriptions } }: Core,
  subscriptionId: string,
  unchanged: Filter<LeadSubscriptionDocument>,
  { $set, $unset }: { $set: Partial<LeadSubscription>; $unset?: typeof noFailures | undefined },
  entry: SubscriptionAuditEntry,
  operation: string,
) {
  const { modifiedCount } = await leadSubscriptions.updateOne(
    { _id: subscriptionId, ...unchanged, ...unlessRecorded(operation) },
    { $set: { ...$set, updatedAt: entry.at }, $unset, $push: { ...audited(entry), ...recording(operation) } },
  )
  return modifiedCount === 1 || (await isRecorded(leadSubscriptions, subscriptionId, operation))
}

async function enableSubscription(
  { db }: Core,
  subscriptionId: string,
  entry: SubscriptionAuditEntry,
  operation: string,
) {
  await db.leadSubscriptions.updateOne(
    { _id: subscriptionId, status: 'disabled', ...notDeleted, ...unlessRecorded(operation) },
    {
      $set: { status: 'enabled', notFound: [], judgedSince: entry.at, updatedAt: entry.at },
      $unset: { disabledReason: '', ...noFailures },
      $push: { ...audited(entry), ...recording(operation) },
    },
  )
}

/**
 * Disables a subscription, after a request or because of an answer. Changes nothing if it is
 * disabled, if the operation is already recorded, or if the subscription changed since `sentAt`.
 * `sentAt` is the start of the attempt that got the answer. A rejected signature also changes
 * nothing if the overlap of two secrets had not ended at that time. With `failingBefore`, also
 * changes nothing if the failures began after that time. The same write stores a notice for the
 * event feed.
 */
export async function disableSubscription(
  core: Core,
  subscriptionId: string,
  reason: DisabledReason,
  entry: SubscriptionAuditEntry,
  cause: { sentAt: Date } | { failingBefore: Date } | { operation: string },
): Promise<boolean> {
  const unless =
    'sentAt' in cause
      ? { judgedSince: { $lte: cause.sentAt } }
      : 'failingBefore' in cause
        ? { failingSince: { $lte: cause.failingBefore } }
        : unlessRecorded(cause.operation)
  const inOverlap = 'sentAt' in cause && reason === 'rejected_auth' && { 'secrets.expiresAt': { $gt: cause.sentAt } }
  const notice = { noticeId: randomUUID(), at: entry.at, kind: 'subscription.disabled' as const, reason }
  const { modifiedCount } = await core.db.leadSubscriptions
    .updateOne(
      { _id: subscriptionId, status: 'enabled', ...unless, ...(inOverlap && { $nor: [inOverlap] }) },
      {
        $set: { status: 'disabled', disabledReason: reason, updatedAt: entry.at },
        $push: {
          ...audited(entry),
          ...('operation' in cause && recording(cause.operation)),
          notices: { $each: [notice], $slice: -noticesMax },
        },
      },
    )
    .finally(() => announceMarked(core))
  return modifiedCount === 1
}

/** Replaces the secrets that the caller has read, like `writeAudited`. */
const replaceSecrets = (
  core: Core,
  { subscriptionId, secrets: read }: LeadSubscription,
  secrets: WebhookSecret[],
  entry: SubscriptionAuditEntry,
  operation: string,
) =>
  writeAudited(
    core,
    subscriptionId,
    { secrets: { $eq: read } },
    { $set: { secrets, judgedSince: entry.at } },
    entry,
    operation,
  )

/**
 * Adds a secret. For `overlapSeconds` more seconds, `webhook-signature` also contains a signature
 * with the previous secret. `X-Service-Webhook-Signature` is still signed with the previous
 * secret until the new one is activated or the overlap ends. Errors: `SubscriptionNotFound`,
 * `ValidationFailed`, `RateLimited` while requests are signed with too many secrets.
 */
export async function rotateSecret(
  core: Core,
  subscriptionId: string,
  overlapSeconds: number | undefined,
  by: Requester,
  operation: string = randomUUID(),
): Promise<CreatedSecret> {
  let subscription = await findSubscription(core, subscriptionId, by)
  validate(field('/overlapSeconds', overlapSeconds, integer(0, 7 * defaultOverlapSeconds)))
  const seen = subscription.secrets
  const secretId = core.plannedIds('key', operation)
  // If a try fails, another write changed the secrets first.
  const tryOnce = (read: LeadSubscription) => {
    const at = new Date(core.now())
    const { kept } = newWebhookSecret(core.secretBox, at, secretId)
    const overlap = { seen, overlapSeconds: overlapSeconds ?? defaultOverlapSeconds }
    const entry = { at, actor: by.subject, action: 'secret_rotated' as const }
    return replaceSecrets(core, read, rotatedSecrets(read.secrets, kept, overlap), entry, operation)
  }
  while (!(await tryOnce(subscription))) subscription = await findSubscription(core, subscriptionId, by)
  await liveSubscriptionsOf(core).changed(subscriptionId)
  return { ...(await viewSubscription(core, subscriptionId, by)), secretId }
}

/**
 * Activates a rotated secret. The newest activated secret signs `X-Service-Webhook-Signature`.
 * Activating it again changes nothing. Errors: `SubscriptionNotFound`, `NotFound` if the secret
 * is unknown or has expired.
 */
export async function activateSecret(
  core: Core,
  subscriptionId: string,
  secretId: string,
  by: Requester,
  operation: string = randomUUID(),
): Promise<SubscriptionView> {
  for (;;) {
    const subscription = await findSubscription(core, subscriptionId, by)
    const at = new Date(core.now())
    const secret = liveSecrets(subscription.secrets, at).find((each) => each.secretId === secretId)
    if (!secret) throw new ServiceError(ErrorCode.NOT_FOUND)
    const secrets = activatedSecrets(subscription.secrets, secretId)
    const entry = { at, actor: by.subject, action: 'secret_activated' as const }
    if (!secret.pending || (await replaceSecrets(core, subscription, secrets, entry, operation))) break
  }
  await liveSubscriptionsOf(core).changed(subscriptionId)
  return viewSubscription(core, subscriptionId, by)
}

/**
 * Returns the plain text of a secret that signs requests now and was created in the last ten
 * minutes. Returns the masked text of an older one. Errors: `IdempotencyConflict` if the secret has
 * expired.
 */
export function showSecret({ secretBox, now }: Core, { secrets }: LeadSubscription, secretId: string): string {
  const at = new Date(now())
  const found = liveSecrets(secrets, at).find((secret) => secret.secretId === secretId)
  if (!found) throw new ServiceError(ErrorCode.IDEMPOTENCY_CONFLICT)
  return isShown(found.createdAt, at) ? secretBox.open(found.sealed) : maskedSecret(found)
}

/** Returns a subscription with its audit, newest entry first. Errors: `SubscriptionNotFound`. */
export async function getSubscription(
  core: Core,
  subscriptionId: string,
  by: Requester,
): Promise<SubscriptionView & { audit: SubscriptionAuditEntry[] }> {
  const [found, requested] = await Promise.all([
    viewSubscription(core, subscriptionId, by),
    core.db.deliveries
      .find({ destination: subscriptionId, requestedAt: { $exists: true } }, { projection: { attempts: 1 } })
      .sort({ requestedAt: -1 })
      .limit(auditMax)
      .toArray(),
  ])
  const requests = requested.flatMap(({ attempts }) => attempts.flatMap(requestOf))
  const audit = [...found.subscription.audit, ...requests].sort((a, b) => b.at.getTime() - a.at.getTime())
  return { ...found, audit: audit.slice(0, auditMax) }
}

/** Returns the audit entry of a manual request that created an attempt. */
function requestOf({ requestedBy, attemptId, createdAt: at }: DeliveryAttempt, index: number) {
  if (requestedBy === undefined) return []
  const action = index === 0 ? ('attempt_created' as const) : ('attempt_retried' as const)
  return [{ at, actor: requestedBy, action, attemptId }]
}

/**
 * Returns a page of the hooks, or of the subscriptions for leads and operational events, newest first,
 * without their audit. Errors: `ValidationFailed`.
 */
export async function listSubscriptions(
  core: Core,
  {
    workspaceId,
    listed,
    ...given
  }: { workspaceId: string; listed: ListedDestinations; limit?: number; pageToken?: string },
): Promise<{ page: SubscriptionView[]; nextPageToken?: string }> {
  const filter = { workspaceId, ...notDeleted, ...isListedAs[listed] }
  const projection = { audit: 0, notices: 0, operations: 0 }
  const read = { list: `${listed} ${workspaceId}`, by: 'createdAt', max: maxPage, projection, ...given } as const
  const { page, nextPageToken } = await readPage(core.db.leadSubscriptions, filter, read)
  const ids = page.map(({ _id }) => _id)
  const counts = await heldCounts(core, ids)
  return {
    page: page.map((each) => ({ subscription: toSubscription(each), heldDeliveries: counts.get(each._id) ?? 0 })),
    nextPageToken,
  }
}

async function requirePublicDestination({ isAllowedDestination }: Core, { destinationUrl }: SubscriptionSettings) {
  const url = destinationUrl === undefined ? undefined : parseDestinationUrl(destinationUrl)
  if (url && !(await isAllowedDestination(url))) throw invalid('/destinationUrl', 'publicAddress')
}

async function requireInstallations(core: Core, workspaceId: string, { policy }: SubscriptionSettings) {
  const { installations = [] } = policy ?? {}
  if (installations.length === 0) return
  const found = await workspaceStoreOf(core).findInstallations(installations)
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
async function beginningOf(
  core: Core,
  { workspaceId, policy, followedTo }: Pick<LeadSubscription, 'workspaceId' | 'policy' | 'followedTo'>,
) {
  if (!policy || !followsFeed(policy) || followedTo !== undefined) return {}
  return { followedTo: await endOfFeed(core, workspaceId) }
}
