import type { Collection } from 'mongodb'
import { perCore } from '../core.ts'
import { insertOnce } from '../mongodb/insert-each.ts'
import { newToken } from '../mongodb/leases.ts'
import { isRecorded, type RecordsOperations, recording, unlessRecorded } from '../mongodb/recorded-operations.ts'
import { hasDocument } from '../mongodb/with-id.ts'
import {
  type Connection,
  type ConnectionStatus,
  defaultCapabilities,
  hasTexts,
  type Installation,
  type InstallationSettings,
  type SealedIdentitySecret,
  type Workspace,
  type WorkspaceSettings,
} from './model.ts'

/** Set while the object is being deleted. Queries skip it. */
interface Deletable {
  deleted?: true
}

const notDeleted = { deleted: { $exists: false } } as const

export type WorkspaceDocument = Omit<Workspace, 'workspaceId'> & { _id: string } & Deletable &
  RecordsOperations & {
    /** Bodies by shortcut. */
    savedReplies?: Record<string, string>
    /** Time at which the next sweep is due. Absent before the first one. */
    sweepAt?: Date
    /** Token of the sweep's lease. A change sets a new one, so that a new sweep begins. */
    sweepToken?: number
    /** The conversation that the sweep has reached, in the order of last messages. Absent when it begins. */
    sweepAfter?: { lastMessageAt: Date; conversationId: string }
  }
export type ConnectionDocument = Omit<Connection, 'connectionId'> & { _id: string } & Deletable & RecordsOperations
export type InstallationDocument = Omit<Installation, 'publicSiteKey'> & { _id: string } & Deletable & RecordsOperations

type WorkspaceCollections = {
  workspaces: Collection<WorkspaceDocument>
  connections: Collection<ConnectionDocument>
  installations: Collection<InstallationDocument>
}

export function createWorkspaceStore({ workspaces, connections, installations }: WorkspaceCollections) {
  return {
    /** Changes nothing if it exists, so that two processes can seed the same data. */
    insertWorkspace: ({ workspaceId: _id, ...rest }: Workspace) => insertOnce(workspaces, { _id, ...rest }),

    async findWorkspace(workspaceId: string): Promise<Workspace | undefined> {
      const found = await workspaces.findOne({ _id: workspaceId, ...notDeleted }, { projection: { savedReplies: 0 } })
      return found ? toWorkspace(found) : undefined
    },

    /** Sets only the given fields, and makes the next sweep due. */
    async updateWorkspace(
      workspaceId: string,
      { name, retention = {} }: WorkspaceSettings,
      now: Date,
      operation: string,
    ) {
      const periods = Object.entries(retention).map(([kind, days]) => [`retention.${kind}`, days] as const)
      const removed = periods.flatMap(([path, days]) => (days === null ? [[path, ''] as const] : []))
      await workspaces.updateOne(
        { _id: workspaceId, ...notDeleted, ...unlessRecorded(operation) },
        {
          $set: {
            name,
            ...Object.fromEntries(periods.filter(([, days]) => days !== null)),
            sweepAt: now,
            sweepToken: newToken(),
          },
          ...(removed.length > 0 && { $unset: Object.fromEntries(removed) }),
          $push: recording(operation),
        },
      )
    },

    /** Returns workspaces in the order of their ids. */
    async listWorkspaces(after: string, limit: number): Promise<Workspace[]> {
      const found = workspaces.find({ _id: { $gt: after }, ...notDeleted }, { projection: { savedReplies: 0 } })
      return (await found.sort({ _id: 1 }).limit(limit).toArray()).map(toWorkspace)
    },

    insertConnection: ({ connectionId: _id, ...rest }: Connection) => insertOnce(connections, { _id, ...rest }),

    async findConnections(connectionIds: string[]): Promise<Connection[]> {
      return (await connections.find({ _id: { $in: connectionIds }, ...notDeleted }).toArray()).map(toConnection)
    },

    async listConnections(workspaceId: string): Promise<Connection[]> {
      const found = connections.find({ workspaceId, ...notDeleted }).sort({ _id: 1 })
      return (await found.toArray()).map(toConnection)
    },

    /** Changes nothing if the operation is already recorded. */
    async setConnectionStatus(connectionId: string, status: ConnectionStatus, operation: string) {
      await connections.updateOne(
        { _id: connectionId, status: { $ne: status }, ...notDeleted, ...unlessRecorded(operation) },
        { $set: { status }, $inc: { statusVersion: 1 }, $push: recording(operation) },
      )
    },

    insertInstallation: ({ publicSiteKey: _id, ...rest }: Installation) => insertOnce(installations, { _id, ...rest }),

    async findInstallations(publicSiteKeys: string[]): Promise<Installation[]> {
      return (await installations.find({ _id: { $in: publicSiteKeys }, ...notDeleted }).toArray()).map(toInstallation)
    },

    async listInstallations(workspaceId: string): Promise<Installation[]> {
      const found = installations.find({ workspaceId, ...notDeleted }).sort({ _id: 1 })
      return (await found.toArray()).map(toInstallation)
    },

    /** Sets only the given fields. */
    async updateInstallation(publicSiteKey: string, settings: InstallationSettings, operation: string) {
      await installations.updateOne(
        { _id: publicSiteKey, ...notDeleted, ...unlessRecorded(operation) },
        { ...fieldsOf(settings), $push: recording(operation) },
      )
    },

    async addOrigin(publicSiteKey: string, origin: string) {
      await installations.updateOne({ _id: publicSiteKey }, { $addToSet: { origins: origin } })
    },

    /**
     * Returns whether this call, or an earlier one of the operation, replaced the secrets. Otherwise
     * another operation has changed them after `read`.
     */
    async replaceIdentitySecrets(
      publicSiteKey: string,
      read: SealedIdentitySecret[],
      secrets: SealedIdentitySecret[],
      operation: string,
    ) {
      const { matchedCount } = await installations.updateOne(
        { _id: publicSiteKey, identitySecrets: { $eq: read }, ...unlessRecorded(operation) },
        { $set: { identitySecrets: secrets }, $push: recording(operation) },
      )
      return matchedCount === 1 || (await isRecorded(installations, publicSiteKey, operation))
    },

    anyInstallationAllows: (originEntries: string[]) =>
      hasDocument(installations, { origins: { $in: originEntries }, enabled: true }),
  }
}

export const workspaceStoreOf = perCore(({ db }) => createWorkspaceStore(db))

/**
 * Returns dotted paths, so that a write does not change other fields. A translation without texts, and a
 * logo that is undefined, are removed.
 */
function fieldsOf({ appearance, capabilities, forms, availability, ...plain }: InstallationSettings) {
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

const toWorkspace = ({ _id: workspaceId, name, createdAt, retention }: WorkspaceDocument): Workspace => ({
  workspaceId,
  name,
  createdAt,
  retention,
})
const toConnection = ({ _id, operations: _, deleted: __, ...rest }: ConnectionDocument): Connection => ({
  connectionId: _id,
  ...rest,
})
// An older installation lacks newer capabilities, which have their defaults.
const toInstallation = ({ _id, operations: _, deleted: __, capabilities, ...rest }: InstallationDocument) => ({
  publicSiteKey: _id,
  ...rest,
  capabilities: { ...defaultCapabilities, ...capabilities },
})
