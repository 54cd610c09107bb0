import { randomBytes, randomUUID } from 'node:crypto'
import { entriesAllowing, isOriginAllowed } from '../../contract/origins.ts'
import { byKey } from '../../platform/concurrency/batcher.ts'
import { type Core, dateOf, perCore } from '../core.ts'
import { inWorkspace, type Scope, ServiceError } from '../errors.ts'
import { isShown } from '../keys/secret-box.ts'
import { insertOnce } from '../mongodb/insert-each.ts'
import { newToken } from '../mongodb/leases.ts'
import { notDeleted } from '../mongodb/not-erasing.ts'
import { isRecorded, type RecordsOperations, recording, unlessRecorded } from '../mongodb/recorded-operations.ts'
import { hasDocument } from '../mongodb/with-id.ts'
import { field, integer, text, validate } from '../rules.ts'
import { announcedMaxAgeMs, liveCacheOf } from '../wakeups/live-cache.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import { validateInstallation, withTexts } from './installation-settings.ts'
import {
  type Connection,
  type ConnectionStatus,
  defaultAppearance,
  defaultCapabilities,
  hasTexts,
  type Installation,
  type InstallationSettings,
  type Retention,
  type RetentionKind,
  retentionKinds,
  type SealedIdentitySecret,
  type Workspace,
  type WorkspaceSettings,
} from './model.ts'

/** `deleted` is set while the object is being deleted. Queries skip it. */
type Stored<T, Id extends keyof T> = Omit<T, Id> & RecordsOperations & { _id: string; deleted?: true }

export type WorkspaceDocument = Stored<Workspace, 'workspaceId'> & {
  /** Bodies by shortcut. */
  savedReplies?: Record<string, string>
  /** Time at which the next sweep is due. Absent before the first one. */
  sweepAt?: Date
  /** Token of the sweep's lease. A change sets a new one, so that a new sweep begins. */
  sweepToken?: number
  /** The conversation that the sweep has reached, in the order of last messages. Absent when it begins. */
  sweepAfter?: { lastMessageAt: Date; conversationId: string }
}
export type ConnectionDocument = Stored<Connection, 'connectionId'>
export type InstallationDocument = Stored<Installation, 'publicSiteKey'>

const toWorkspace = ({ _id: workspaceId, name, createdAt, retention }: WorkspaceDocument): Workspace => ({
  workspaceId,
  name,
  createdAt,
  retention,
})
const toConnection = ({ _id, operations: _, deleted: __, ...rest }: ConnectionDocument) => ({
  connectionId: _id,
  ...rest,
})
// An older installation lacks newer capabilities, which have their defaults.
const toInstallation = ({ _id, operations: _, deleted: __, capabilities, ...rest }: InstallationDocument) => ({
  publicSiteKey: _id,
  ...rest,
  capabilities: { ...defaultCapabilities, ...capabilities },
})

/** Cached data, at most a second old. */
export const siteDirectoryOf = perCore((core) => {
  const options = { maxEntries: 10_000, maxAgeMs: announcedMaxAgeMs }
  return {
    connections: liveCacheOf<Connection>(core, {
      ...options,
      loadMany: async (ids) => byKey(await findConnections(core, ids), ({ connectionId }) => connectionId),
    }),
    installations: liveCacheOf<Installation>(core, {
      ...options,
      loadMany: async (keys) => byKey(await findInstallations(core, keys), ({ publicSiteKey }) => publicSiteKey),
    }),
  }
})

// The functions below throw `NotFound` for an object of another workspace, as for an unknown one. Writes are
// idempotent by operation name: a repeat after a crash creates and changes nothing twice.

const withoutReplies = { projection: { savedReplies: 0 } } as const

/** Returns undefined for an unknown workspace. */
export async function workspaceWith({ db }: Core, workspaceId: string) {
  const found = await db.workspaces.findOne({ _id: workspaceId, ...notDeleted }, withoutReplies)
  return found ? toWorkspace(found) : undefined
}

export const findWorkspace = async (core: Core, workspaceId: string) =>
  inWorkspace(await workspaceWith(core, workspaceId), undefined)

const findConnections = async ({ db }: Core, connectionIds: string[]) =>
  (await db.connections.find({ _id: { $in: connectionIds }, ...notDeleted }).toArray()).map(toConnection)

export const findConnection = async (core: Core, connectionId: string, scope: Scope) =>
  inWorkspace((await findConnections(core, [connectionId]))[0], scope)

export const listConnections = async ({ db }: Core, workspaceId: string) =>
  (await db.connections.find({ workspaceId, ...notDeleted }, { sort: { _id: 1 } }).toArray()).map(toConnection)

export const findInstallations = async ({ db }: Core, publicSiteKeys: string[]) =>
  (await db.installations.find({ _id: { $in: publicSiteKeys }, ...notDeleted }).toArray()).map(toInstallation)

export const findInstallation = async (core: Core, publicSiteKey: string, scope: Scope) =>
  inWorkspace((await findInstallations(core, [publicSiteKey]))[0], scope)

export const listInstallations = async ({ db }: Core, workspaceId: string) =>
  (await db.installations.find({ workspaceId, ...notDeleted }, { sort: { _id: 1 } }).toArray()).map(toInstallation)

/** Returns workspaces in the order of their ids. Errors: `ValidationFailed`. */
export async function listWorkspaces({ db }: Core, after: string, limit: number = 100): Promise<Workspace[]> {
  validate(field('/limit', limit, integer(1, 1000)))
  const options = { ...withoutReplies, sort: { _id: 1 }, limit } as const
  return (await db.workspaces.find({ _id: { $gt: after }, ...notDeleted }, options).toArray()).map(toWorkspace)
}

export async function createWorkspace(core: Core, name: string, operation: string = randomUUID()): Promise<Workspace> {
  validate(field('/name', name, text(1, 128)))
  const workspaceId = core.plannedIds('ws', operation)
  const workspace = { name, createdAt: dateOf(core) }
  await insertOnce(core.db.workspaces, { _id: workspaceId, ...workspace })
  return { workspaceId, ...workspace }
}

/** The longest period of retention. */
const maxDays = 3_650

/** Returns days by kind; 0 means no limit. Periods that are not set have the default of the settings. */
export const retentionOf = (
  { config }: Core,
  { retention = {} }: { retention?: Retention },
): Record<RetentionKind, number> => ({
  conversations: config.RETENTION_CONVERSATION_DAYS,
  leads: config.RETENTION_LEAD_DAYS,
  emptySessions: config.RETENTION_EMPTY_SESSION_DAYS,
  audit: config.RETENTION_AUDIT_DAYS,
  heldDeliveries: config.RETENTION_HELD_DELIVERY_DAYS,
  ...retention,
})

/** Sets only the given fields, and makes the next sweep due. Errors: `NotFound`, `ValidationFailed`. */
export async function updateWorkspace(
  core: Core,
  workspaceId: string,
  { name, retention = {} }: WorkspaceSettings,
  operation: string = randomUUID(),
) {
  await findWorkspace(core, workspaceId)
  validate(
    field('/name', name, text(1, 128)),
    // 0 is valid here; it means no limit.
    ...retentionKinds.map((kind) =>
      field(`/retention/${kind}/days`, retention[kind] ?? undefined, integer(0, maxDays)),
    ),
  )
  const periods = Object.entries(retention).map(([kind, days]) => [`retention.${kind}`, days] as const)
  const set = Object.fromEntries(periods.filter(([, days]) => days !== null))
  const removed = periods.flatMap(([path, days]) => (days === null ? [[path, ''] as const] : []))
  await core.db.workspaces.updateOne(
    { _id: workspaceId, ...notDeleted, ...unlessRecorded(operation) },
    {
      $set: { name, ...set, sweepAt: dateOf(core), sweepToken: newToken() },
      ...(removed.length > 0 && { $unset: Object.fromEntries(removed) }),
      $push: recording(operation),
    },
  )
  core.bus.emit('due', 'sweep of old data')
}

/** Errors: `NotFound`, `ValidationFailed`. */
export async function createConnection(
  core: Core,
  workspaceId: string,
  name: string,
  scope: Scope,
  operation: string = randomUUID(),
): Promise<Connection> {
  inWorkspace(await workspaceWith(core, workspaceId), scope)
  validate(field('/name', name, text(1, 128)))
  const connectionId = core.plannedIds('con', operation)
  const connection = { workspaceId, name, status: 'enabled' as const, statusVersion: 0 }
  await insertOnce(core.db.connections, { _id: connectionId, ...connection })
  return { connectionId, ...connection }
}

export async function setConnectionStatus(
  core: Core,
  connectionId: string,
  status: ConnectionStatus,
  scope: Scope,
  operation: string = randomUUID(),
) {
  await findConnection(core, connectionId, scope)
  const changed = { _id: connectionId, status: { $ne: status }, ...notDeleted, ...unlessRecorded(operation) }
  const update = { $set: { status }, $inc: { statusVersion: 1 }, $push: recording(operation) }
  await wakeupsOf(core).changing([connectionId], () => core.db.connections.updateOne(changed, update))
}

/** Errors: `NotFound`, `ValidationFailed`. */
export async function createInstallation(
  core: Core,
  connectionId: string,
  settings: InstallationSettings,
  scope: Scope,
  operation: string = randomUUID(),
): Promise<{ installation: Installation; identitySecret: IdentitySecret }> {
  const { workspaceId } = await findConnection(core, connectionId, scope)
  validateInstallation({ ...settings, origins: settings.origins ?? [] })
  const publicSiteKey = core.plannedIds('pk', operation)
  const kid = core.plannedIds('key', operation)
  await insertOnce(core.db.installations, {
    _id: publicSiteKey,
    connectionId,
    workspaceId,
    origins: [],
    enabled: true,
    defaultLocale: 'en',
    ...settings,
    appearance: withTexts({ ...defaultAppearance, ...settings.appearance }),
    capabilities: { ...defaultCapabilities, ...settings.capabilities },
    identitySecrets: [newIdentitySecret(core, kid)],
  })
  await wakeupsOf(core).stateChanged(publicSiteKey)
  // An earlier run may have created it with another secret, so the stored one is read.
  const installation = await findInstallation(core, publicSiteKey, scope)
  return { installation, identitySecret: openIdentitySecret(core, installation, kid) }
}

/** Sets only the given fields. Errors: `NotFound`, `ValidationFailed`. */
export async function updateInstallation(
  core: Core,
  publicSiteKey: string,
  settings: InstallationSettings,
  scope: Scope,
  operation: string = randomUUID(),
): Promise<Installation> {
  await findInstallation(core, publicSiteKey, scope)
  validateInstallation(settings)
  const unchanged = { _id: publicSiteKey, ...notDeleted, ...unlessRecorded(operation) }
  const update = { ...installationUpdate(settings), $push: recording(operation) }
  await wakeupsOf(core).changing([publicSiteKey], () => core.db.installations.updateOne(unchanged, update))
  return findInstallation(core, publicSiteKey, scope)
}

/**
 * Returns dotted paths, so that a write does not change other fields. A translation without texts, and a
 * logo that is undefined, are removed.
 */
export function installationUpdate({ appearance, capabilities, forms, availability, ...plain }: InstallationSettings) {
  const { translations = {}, ...look } = appearance ?? {}
  const nested = Object.entries({ appearance: look, capabilities, forms, availability }).flatMap(([part, fields]) =>
    Object.entries(fields ?? {}).map(([name, value]) => [`${part}.${name}`, value]),
  )
  const [texts, removed] = [true, false].map((has) =>
    Object.entries(translations)
      .filter(([, translation]) => hasTexts(translation) === has)
      .map(([tag, translation]) => [`appearance.translations.${tag}`, has ? translation : '']),
  )
  if ('logoUrl' in look && look.logoUrl === undefined) removed!.push(['appearance.logoUrl', ''])
  return {
    $set: { ...plain, ...Object.fromEntries([...nested.filter(([, value]) => value !== undefined), ...texts!]) },
    ...(removed!.length > 0 && { $unset: Object.fromEntries(removed!) }),
  }
}

/**
 * Errors: `NotFound`; `ValidationFailed`; `RateLimited` while too many replaced secrets are kept;
 * `IdempotencyConflict` if the installation no longer accepts the new secret.
 */
export async function rotateIdentitySecret(
  core: Core,
  publicSiteKey: string,
  scope: Scope,
  how: { operation?: string; overlapSeconds?: number | undefined } = {},
): Promise<IdentitySecret> {
  const { operation = randomUUID(), overlapSeconds = defaultOverlapSeconds } = how
  let installation = await findInstallation(core, publicSiteKey, scope)
  validate(field('/overlapSeconds', overlapSeconds, integer(0, 7 * defaultOverlapSeconds)))
  const seen = installation.identitySecrets
  const fresh = newIdentitySecret(core, core.plannedIds('key', operation))
  const { installations } = core.db
  await wakeupsOf(core).changing([publicSiteKey], async () => {
    for (;;) {
      const { identitySecrets: read } = installation
      const rotated = rotatedIdentitySecrets(read, fresh, { seen, at: dateOf(core), overlapSeconds })
      const { matchedCount } = await installations.updateOne(
        { _id: publicSiteKey, identitySecrets: { $eq: read }, ...unlessRecorded(operation) },
        { $set: { identitySecrets: rotated }, $push: recording(operation) },
      )
      if (matchedCount === 1 || (await isRecorded(installations, publicSiteKey, operation))) return
      // Another write changed the secrets first.
      installation = await findInstallation(core, publicSiteKey, scope)
    }
  })
  return openIdentitySecret(core, await findInstallation(core, publicSiteKey, scope), fresh.kid)
}

export async function isOriginKnown(core: Core, origin: string): Promise<boolean> {
  const entries = entriesAllowing(origin)
  return entries.length > 0 && hasDocument(core.db.installations, { origins: { $in: entries }, enabled: true })
}

/**
 * Returns an installation that pages of the origin may use. Errors: `InstallationNotFound`,
 * `OriginNotAllowed`, `ConnectionDisabled`.
 */
export async function installationFor(core: Core, publicSiteKey: string, origin: string): Promise<Installation> {
  const installation = await siteDirectoryOf(core).installations.get(publicSiteKey)
  if (!installation?.enabled) throw new ServiceError('InstallationNotFound')
  if (!isOriginAllowed(origin, installation.origins)) throw new ServiceError('OriginNotAllowed')
  const connection = await siteDirectoryOf(core).connections.get(installation.connectionId)
  if (connection?.status !== 'enabled') throw new ServiceError('ConnectionDisabled')
  return installation
}

export interface IdentitySecret {
  kid: string
  secret: string
}

export const defaultOverlapSeconds = 86_400

/** Secrets that are kept in addition to the current one. */
const maxReplaced = 10

export const newIdentitySecret = (core: Core, kid: string): SealedIdentitySecret => ({
  kid,
  sealed: core.secretBox.seal(randomBytes(32).toString('base64url')),
  createdAt: dateOf(core),
})

/** Returns the secret, masked unless it is fresh. Errors: `IdempotencyConflict` if it is no longer accepted. */
export function openIdentitySecret(core: Core, { identitySecrets }: Installation, kid: string): IdentitySecret {
  const found = identitySecrets.find((secret) => secret.kid === kid)
  if (!found) throw new ServiceError('IdempotencyConflict')
  return { kid, secret: isShown(found.createdAt, dateOf(core)) ? core.secretBox.open(found.sealed) : '••••' }
}

/**
 * Returns the secrets after a rotation: `fresh`, the current one, and those that were replaced less than
 * `overlapSeconds` ago. Concurrent calls may have replaced some since this call read `seen`; these are kept
 * too, because a caller may just have received them. Errors: `RateLimited` if too many would be kept.
 */
export function rotatedIdentitySecrets(
  secrets: SealedIdentitySecret[],
  fresh: SealedIdentitySecret,
  { seen, at, overlapSeconds }: { seen: SealedIdentitySecret[]; at: Date; overlapSeconds: number },
): SealedIdentitySecret[] {
  // An earlier run of the operation has added it.
  if (secrets.some(({ kid }) => kid === fresh.kid)) return secrets
  const [current, ...replaced] = secrets
  const seenReplaced = new Set(seen.slice(1).map(({ kid }) => kid))
  const age = ({ replacedAt = at }: SealedIdentitySecret) => at.getTime() - replacedAt.getTime()
  const kept = replaced.filter((secret) => !seenReplaced.has(secret.kid) || age(secret) < overlapSeconds * 1000)
  if (kept.length >= maxReplaced) {
    const retryAfter = Math.ceil(overlapSeconds - Math.max(...kept.map(age)) / 1000)
    throw new ServiceError('RateLimited', { retryAfter: Math.max(1, retryAfter) })
  }
  return [
    fresh,
    ...(current ? [{ ...current, replacedAt: at }] : []),
    ...kept.map((secret) => ({ ...secret, replacedAt: secret.replacedAt ?? at })),
  ]
}
