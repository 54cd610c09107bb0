import { randomInt, randomUUID } from 'node:crypto'
import type { Filter, UpdateFilter } from 'mongodb'
import { parseDestinationUrl } from '../../contract/destination-url.ts'
import { type Core, dateOf } from '../core.ts'
import { invalid, inWorkspace, ServiceError } from '../errors.ts'
import { isShown } from '../keys/secret-box.ts'
import { announceMarked } from '../leads/leads.ts'
import { committed } from '../mongodb/committed.ts'
import { insertOnce } from '../mongodb/insert-each.ts'
import { notDeleted } from '../mongodb/not-erasing.ts'
import { isRecorded, recording, unlessRecorded } from '../mongodb/recorded-operations.ts'
import { idsOf } from '../mongodb/with-id.ts'
import { type PageRequest, readPage } from '../page-token.ts'
import { field, integer, issueIf, validate } from '../rules.ts'
import type { Caller } from '../workspaces/access.ts'
import { findInstallations, findWorkspace } from '../workspaces/workspaces.ts'
import { isAllowedDestination } from './destination-check.ts'
import { findSubscriptions, followersOf, liveSubscriptionsOf } from './live-subscriptions.ts'
import type { DeliveryAttempt } from './model.ts'
import { applyStatus, countPaused, pausedCounts } from './pauses.ts'
import {
  auditMax,
  type DisabledReason,
  followsFeed,
  isHook,
  type LeadSubscription,
  type LeadSubscriptionDocument,
  type NoticeContent,
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

/** `scopes` are absent for the service itself. */
export type Requester = Pick<Caller, 'subject' | 'workspaceId'> & Partial<Pick<Caller, 'scopes'>>

export interface SubscriptionView {
  subscription: LeadSubscription
  heldDeliveries: number
}

export type ListedDestinations = 'hooks' | 'subscriptions'

const isListedAs: Record<ListedDestinations, Filter<LeadSubscriptionDocument>> = {
  hooks: { resource: 'hook' },
  subscriptions: { $or: [{ resource: { $exists: false } }, { sentAs: { $exists: true } }] },
}

const maxPage = 100
/** Notices of a subscription that wait for their entries. */
const noticesMax = 100
export const noFailures = { failingSince: '', deadLettersSince: '' } as const

export const audited = (entry: SubscriptionAuditEntry) => ({
  audit: { $each: [entry], $position: 0, $slice: auditMax },
})

/** Adds a notice, which its document keeps until the feed has the entry. */
export const noticed = (at: Date, notice: NoticeContent) => ({
  notices: { $each: [{ noticeId: randomUUID(), at, ...notice }], $slice: -noticesMax },
})

/** Returns the number of the last entry of a workspace's feed; 0 if it is empty. */
export async function endOfFeed({ db }: Core, workspaceId: string) {
  // No failover rolls back what this reads, so no number is given twice.
  const newest = { ...committed, projection: { _id: 0, number: 1 }, sort: { number: -1 } } as const
  return (await db.feedEntries.findOne({ workspaceId }, newest))?.number ?? 0
}

export async function findSubscription(core: Core, subscriptionId: string, { workspaceId }: Requester) {
  const [found] = await findSubscriptions(core, [subscriptionId])
  return inWorkspace(found, workspaceId, 'SubscriptionNotFound')
}

/**
 * Creates a subscription or a hook with one secret, which `showSecret` returns. A repeat with the same
 * operation changes nothing, as in the writes below. Errors: `NotFound` for the workspace;
 * `ValidationFailed`, with the rule `maxItems` if the workspace has its maximum; `PermissionDenied` if the
 * caller may not read what the destination gets.
 */
export async function createSubscription(
  core: Core,
  settings: Omit<SubscriptionSettings, 'status'> &
    Required<Pick<SubscriptionSettings, 'destinationUrl' | 'mappedFields' | 'automatic'>> &
    Pick<LeadSubscription, 'workspaceId' | 'resource' | 'sentAs'>,
  by: Requester,
  operation: string = randomUUID(),
) {
  const { secretBox, plannedIds, config } = core
  const { workspaceId, destinationUrl, headers = [], resource, sentAs, name, mappedFields, sentNames } = settings
  const { automatic, policy, maxPerSecond, disableAfterNotFound, workflow } = settings
  if (by.workspaceId !== undefined && by.workspaceId !== workspaceId) throw new ServiceError('NotFound')
  await findWorkspace(core, workspaceId)
  validate(...settingIssues(settings, { resource }))
  requireReadable(settings, by)
  await requireKnown(core, workspaceId, settings)
  const at = dateOf(core)
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
  return { subscriptionId, secretId }
}

/** Changes nothing if the subscription exists. Returns false if the workspace has `max` of its kind. */
async function insertSubscription(
  { db: { leadSubscriptions } }: Core,
  { subscriptionId, ...rest }: LeadSubscription,
  max: number,
) {
  const places = Array.from({ length: max }, (_, n) => `${isHook(rest) ? 'hook' : 'leads'} ${n}`)
  const placed = { workspaceId: rest.workspaceId, place: { $exists: true } }
  // A failed try means that a parallel call took the place, or inserted the subscription.
  for (;;) {
    const known = { $or: [{ _id: subscriptionId }, placed] }
    const present = await leadSubscriptions.find(known, { projection: { place: 1 } }).toArray()
    if (present.some(({ _id }) => _id === subscriptionId)) return true
    const taken = new Set(present.map(({ place }) => place))
    const free = places.filter((place) => !taken.has(place))
    if (free.length === 0) return false
    const place = free[randomInt(free.length)]
    if (await insertOnce(leadSubscriptions, { _id: subscriptionId, ...rest, place })) return true
  }
}

/**
 * Sets the given fields. A move to another origin removes the custom headers without a given value. Errors:
 * `SubscriptionNotFound`, `ValidationFailed`, `PermissionDenied` as for `createSubscription`.
 */
export async function updateSubscription(
  core: Core,
  subscriptionId: string,
  settings: SubscriptionSettings,
  by: Requester,
  operation: string = randomUUID(),
) {
  const stored = await findSubscription(core, subscriptionId, by)
  validate(...settingIssues(settings, stored))
  requireReadable({ ...stored, ...settings }, by)
  await requireKnown(core, stored.workspaceId, settings)
  const { status, ...given } = settings
  const changed = { ...given, ...(await beginningOf(core, { ...stored, policy: settings.policy })) }
  const entry = { at: dateOf(core), actor: by.subject }
  // After a failed try, the headers may belong to another origin, so they are checked again.
  if (Object.keys(changed).length > 0)
    await untilWritten(core, subscriptionId, by, (read) => {
      validate(...settingIssues(settings, read))
      requireReadable({ ...read, ...settings }, by)
      const changes = changesOf(core.secretBox, changed, read, entry.at)
      const { destination, headers = { $exists: false } } = read
      const unchanged = changes.destination || changes.headers ? { destination, headers } : {}
      const update = { $set: { ...changes, notFound: changes.judgedSince && [] } }
      const $unset = changes.judgedSince && noFailures
      const updated = { ...entry, action: 'updated' as const }
      return writeAudited(core, subscriptionId, unchanged, { ...update, $unset }, updated, `${operation} settings`)
    })
  const statusOperation = `${operation} status`
  if (status === 'enabled') {
    const $set = { status, notFound: [], judgedSince: entry.at }
    const update = { $set, $unset: { disabledReason: '', ...noFailures } as const }
    const enabled = { ...entry, action: status }
    await writeAudited(core, subscriptionId, { status: 'disabled', ...notDeleted }, update, enabled, statusOperation)
  }
  if (status === 'disabled')
    await disableSubscription(core, subscriptionId, 'operator', entry, { operation: statusOperation })
  await liveSubscriptionsOf(core).changed(subscriptionId, followersOf(stored.workspaceId))
  // `reconcilePauses` repeats this after a crash. A recovery waits while its subscription is disabled.
  if (status) await applyStatus(core, subscriptionId).finally(() => core.bus.emit('due', 'recover deliveries'))
}

async function untilWritten(
  core: Core,
  subscriptionId: string,
  by: Requester,
  write: (read: LeadSubscription) => Promise<boolean>,
) {
  let isWritten = false
  while (!isWritten) isWritten = await write(await findSubscription(core, subscriptionId, by))
}

/**
 * Writes changes and their audit entry. Returns false if the subscription does not match `unchanged`. A
 * recorded operation changes nothing and returns true.
 */
async function writeAudited(
  { db: { leadSubscriptions } }: Core,
  subscriptionId: string,
  unchanged: Filter<LeadSubscriptionDocument>,
  { $set, $unset, $push }: Pick<UpdateFilter<LeadSubscriptionDocument>, '$set' | '$unset' | '$push'>,
  entry: SubscriptionAuditEntry,
  operation?: string,
) {
  const { modifiedCount } = await leadSubscriptions.updateOne(
    { _id: subscriptionId, ...unchanged, ...(operation && unlessRecorded(operation)) },
    {
      $set: { ...$set, updatedAt: entry.at },
      $unset,
      $push: { ...$push, ...audited(entry), ...(operation && recording(operation)) },
    },
  )
  if (modifiedCount === 1 || operation === undefined) return modifiedCount === 1
  return isRecorded(leadSubscriptions, subscriptionId, operation)
}

/**
 * Disables a subscription and stores a notice for the feed. Changes nothing if it is disabled, if the
 * operation is recorded, if it changed since the attempt began (`sentAt`), or if its failures began after
 * `failingBefore`. A rejected signature counts only after the overlap of two secrets.
 */
export async function disableSubscription(
  core: Core,
  subscriptionId: string,
  reason: DisabledReason,
  entry: Pick<SubscriptionAuditEntry, 'at' | 'actor' | 'attemptId'>,
  cause: { sentAt: Date } | { failingBefore: Date } | { operation: string },
) {
  const { at } = entry
  const unless: Filter<LeadSubscriptionDocument> = { status: 'enabled' }
  if ('sentAt' in cause) unless.judgedSince = { $lte: cause.sentAt }
  if ('failingBefore' in cause) unless.failingSince = { $lte: cause.failingBefore }
  if ('sentAt' in cause && reason === 'rejected_auth') unless.$nor = [{ 'secrets.expiresAt': { $gt: cause.sentAt } }]
  const update = {
    $set: { status: 'disabled' as const, disabledReason: reason },
    $push: noticed(at, { kind: 'subscription.disabled', reason }),
  }
  const disabled = { ...entry, action: 'disabled' as const, disabledReason: reason }
  const operation = 'operation' in cause ? cause.operation : undefined
  return writeAudited(core, subscriptionId, unless, update, disabled, operation).finally(() =>
    announceMarked(core, 'subscriptions'),
  )
}

/** Replaces the secrets by what `next` makes of the stored ones; it returns undefined if nothing changes. */
async function changeSecrets(
  core: Core,
  subscriptionId: string,
  { by, operation, action }: { by: Requester; operation: string; action: SubscriptionAuditEntry['action'] },
  next: (read: WebhookSecret[], at: Date) => WebhookSecret[] | undefined,
) {
  await untilWritten(core, subscriptionId, by, async ({ secrets: read }) => {
    const at = dateOf(core)
    const secrets = next(read, at)
    const update = { $set: { secrets, judgedSince: at } }
    const entry = { at, actor: by.subject, action }
    return !secrets || writeAudited(core, subscriptionId, { secrets: { $eq: read } }, update, entry, operation)
  })
  await liveSubscriptionsOf(core).changed(subscriptionId)
}

/**
 * Adds a secret, and returns its id. `webhook-signature` has one of the previous secret too, for
 * `overlapSeconds`. `X-Service-Webhook-Signature` stays with the previous one until the activation or the
 * end of the overlap. Errors: `SubscriptionNotFound`, `ValidationFailed`, `RateLimited` while too many
 * secrets sign.
 */
export async function rotateSecret(
  core: Core,
  subscriptionId: string,
  overlapSeconds: number | undefined,
  by: Requester,
  operation: string = randomUUID(),
) {
  const { secrets: seen } = await findSubscription(core, subscriptionId, by)
  validate(field('/overlapSeconds', overlapSeconds, integer(0, 7 * defaultOverlapSeconds)))
  const secretId = core.plannedIds('key', operation)
  const overlap = { seen, overlapSeconds: overlapSeconds ?? defaultOverlapSeconds }
  await changeSecrets(core, subscriptionId, { by, operation, action: 'secret_rotated' }, (read, at) =>
    rotatedSecrets(read, newWebhookSecret(core.secretBox, at, secretId).kept, overlap),
  )
  return { secretId }
}

/**
 * The newest activated secret signs `X-Service-Webhook-Signature`. Can be repeated. Errors:
 * `SubscriptionNotFound`, `NotFound` if the secret is unknown or has expired.
 */
export async function activateSecret(
  core: Core,
  subscriptionId: string,
  secretId: string,
  by: Requester,
  operation: string = randomUUID(),
) {
  await changeSecrets(core, subscriptionId, { by, operation, action: 'secret_activated' }, (read, at) => {
    const secret = liveSecrets(read, at).find((each) => each.secretId === secretId)
    if (!secret) throw new ServiceError('NotFound')
    return secret.pending && activatedSecrets(read, secretId)
  })
}

/**
 * Returns the plain text of a live secret that was created in the last ten minutes, or the masked text of
 * an older one. Errors: `IdempotencyConflict` if it has expired.
 */
export function showSecret({ secretBox, now }: Core, { secrets }: LeadSubscription, secretId: string) {
  const at = new Date(now())
  const found = liveSecrets(secrets, at).find((secret) => secret.secretId === secretId)
  if (!found) throw new ServiceError('IdempotencyConflict')
  return isShown(found.createdAt, at) ? secretBox.open(found.sealed) : maskedSecret(found)
}

/** Returns a subscription with its audit, newest first. Errors: `SubscriptionNotFound`. */
export async function getSubscription(core: Core, subscriptionId: string, by: Requester) {
  const [subscription, heldDeliveries, requested] = await Promise.all([
    findSubscription(core, subscriptionId, by),
    countPaused(core, subscriptionId),
    core.db.deliveries
      .find(
        { destination: subscriptionId, requestedAt: { $exists: true } },
        { projection: { attempts: 1 }, sort: { requestedAt: -1 }, limit: auditMax },
      )
      .toArray(),
  ])
  const requests = requested.flatMap(({ attempts }) => attempts.flatMap(requestOf))
  const audit = [...subscription.audit, ...requests].sort((a, b) => b.at.getTime() - a.at.getTime())
  return { subscription, heldDeliveries, audit: audit.slice(0, auditMax) }
}

function requestOf({ requestedBy, attemptId, createdAt: at }: DeliveryAttempt, index: number) {
  if (requestedBy === undefined) return []
  const action = index === 0 ? ('attempt_created' as const) : ('attempt_retried' as const)
  return [{ at, actor: requestedBy, action, attemptId }]
}

/** Returns a page, newest first, without the audit. Errors: `ValidationFailed`. */
export async function listSubscriptions(
  core: Core,
  { workspaceId, listed, ...given }: PageRequest & { workspaceId: string; listed: ListedDestinations },
) {
  const filter = { workspaceId, ...notDeleted, ...isListedAs[listed] }
  const projection = { audit: 0, notices: 0, operations: 0 }
  const read = { list: `${listed} ${workspaceId}`, by: 'createdAt', max: maxPage, projection, ...given } as const
  const { page, nextPageToken } = await readPage(core.db.leadSubscriptions, filter, read)
  const counts = await pausedCounts(core, idsOf(page))
  return {
    page: page.map((each) => ({ subscription: toSubscription(each), heldDeliveries: counts.get(each._id) ?? 0 })),
    nextPageToken,
  }
}

/** Throws `ValidationFailed` for an installation that the workspace lacks, and for an address that is not public. */
async function requireKnown(core: Core, workspaceId: string, { policy, destinationUrl }: SubscriptionSettings) {
  const { installations = [] } = policy ?? {}
  const found = installations.length === 0 ? [] : await findInstallations(core, installations)
  const known = new Set(found.flatMap((each) => (each.workspaceId === workspaceId ? each.publicSiteKey : [])))
  validate(...installations.map((key, index) => issueIf(!known.has(key), `/policy/installations/${index}`, 'exists')))
  const url = destinationUrl === undefined ? undefined : parseDestinationUrl(destinationUrl)
  if (url && !(await isAllowedDestination(core, url))) throw invalid('/destinationUrl', 'publicAddress')
}

/** A destination begins to follow the feed at its end. */
async function beginningOf(
  core: Core,
  { workspaceId, policy, followedTo }: Pick<LeadSubscription, 'workspaceId' | 'policy' | 'followedTo'>,
) {
  if (!policy || !followsFeed(policy) || followedTo !== undefined) return {}
  return { followedTo: await endOfFeed(core, workspaceId) }
}
