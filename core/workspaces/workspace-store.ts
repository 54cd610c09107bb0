import type { Collection } from 'mongodb'
import { isRecorded, type RecordsOperations, recording, unlessRecorded } from '../idempotency/recorded-operations.ts'

export interface Workspace {
  workspaceId: string
  name: string
  createdAt: Date
}

export type ConnectionStatus = 'enabled' | 'disabled'

export interface Connection {
  connectionId: string
  workspaceId: string
  name: string
  status: ConnectionStatus
  /** Counts the changes of the status. */
  statusVersion: number
}

export interface Appearance {
  title: string
  greeting: string
  accentColor: string
  position: 'left' | 'right'
  logoUrl?: string
}

export const capabilityNames = [
  'identity',
  'typing',
  'pageContext',
  'navigation',
  'screenshots',
  'preChatForm',
  'offlineForm',
  'messageRetryRoute',
] as const

export type Capabilities = Record<(typeof capabilityNames)[number], boolean>

/** One field of a form that visitors fill in. */
export interface FormField {
  name: string
  label: string
  type: 'text' | 'email' | 'tel' | 'textarea'
  required: boolean
  maxLength: number
}

export type FormKind = 'preChat' | 'offline'
export type Forms = Partial<Record<FormKind, FormField[]>>

export interface Installation {
  publicSiteKey: string
  connectionId: string
  workspaceId: string
  origins: string[]
  enabled: boolean
  appearance: Appearance
  capabilities: Capabilities
  defaultLocale: string
  forms?: Forms
  /** The live identity secrets, the current one first. */
  identitySecrets: SealedIdentitySecret[]
}

export interface SealedIdentitySecret {
  kid: string
  sealed: string
  /** When a rotation replaced it. */
  replacedAt?: Date
}

/**
 * The settable fields of an installation. Each appearance text, capability and form is a separate
 * field.
 */
export interface InstallationSettings {
  origins?: string[]
  enabled?: boolean
  appearance?: Partial<Appearance>
  capabilities?: Partial<Capabilities>
  defaultLocale?: string
  forms?: Forms
}

export type WorkspaceDocument = Omit<Workspace, 'workspaceId'> & { _id: string }
export type ConnectionDocument = Omit<Connection, 'connectionId'> & { _id: string } & RecordsOperations
export type InstallationDocument = Omit<Installation, 'publicSiteKey'> & { _id: string } & RecordsOperations

export interface WorkspaceStore {
  /** Changes nothing if it exists, so that two processes can seed the same data. */
  insertWorkspace(workspace: Workspace): Promise<void>
  findWorkspace(workspaceId: string): Promise<Workspace | undefined>
  /** By id, after the given one. */
  listWorkspaces(after: string, limit: number): Promise<Workspace[]>
  insertConnection(connection: Connection): Promise<void>
  findConnections(connectionIds: string[]): Promise<Connection[]>
  listConnections(workspaceId: string): Promise<Connection[]>
  /** Changes nothing if the operation is recorded. */
  setConnectionStatus(connectionId: string, status: ConnectionStatus, operation: string): Promise<void>
  insertInstallation(installation: Installation): Promise<void>
  findInstallations(publicSiteKeys: string[]): Promise<Installation[]>
  listInstallations(workspaceId: string): Promise<Installation[]>
  /** Sets only the given fields. Changes nothing if the operation is recorded. */
  updateInstallation(publicSiteKey: string, settings: InstallationSettings, operation: string): Promise<void>
  /** Adds an origin if it is missing. */
  addOrigin(publicSiteKey: string, origin: string): Promise<void>
  /**
   * Returns false and changes nothing if the secrets differ from those that the caller read.
   * Returns true if the operation is applied, now or earlier.
   */
  replaceIdentitySecrets(
    publicSiteKey: string,
    read: SealedIdentitySecret[],
    secrets: SealedIdentitySecret[],
    operation: string,
  ): Promise<boolean>
  /** Whether an enabled installation has one of the entries. */
  anyInstallationAllows(originEntries: string[]): Promise<boolean>
}

type WorkspaceCollections = {
  workspaces: Collection<WorkspaceDocument>
  connections: Collection<ConnectionDocument>
  installations: Collection<InstallationDocument>
}

export function createWorkspaceStore({ workspaces, connections, installations }: WorkspaceCollections): WorkspaceStore {
  return {
    async insertWorkspace({ workspaceId, ...rest }) {
      await workspaces.updateOne({ _id: workspaceId }, { $setOnInsert: rest }, { upsert: true })
    },

    async findWorkspace(workspaceId) {
      const found = await workspaces.findOne({ _id: workspaceId })
      return found ? toWorkspace(found) : undefined
    },

    async listWorkspaces(after, limit) {
      const found = workspaces.find({ _id: { $gt: after } }).sort({ _id: 1 })
      return (await found.limit(limit).toArray()).map(toWorkspace)
    },

    async insertConnection({ connectionId, ...rest }) {
      await connections.updateOne({ _id: connectionId }, { $setOnInsert: rest }, { upsert: true })
    },

    async findConnections(connectionIds) {
      return (await connections.find({ _id: { $in: connectionIds } }).toArray()).map(toConnection)
    },

    async listConnections(workspaceId) {
      return (await connections.find({ workspaceId }).sort({ _id: 1 }).toArray()).map(toConnection)
    },

    async setConnectionStatus(connectionId, status, operation) {
      await connections.updateOne(
        { _id: connectionId, status: { $ne: status }, ...unlessRecorded(operation) },
        { $set: { status }, $inc: { statusVersion: 1 }, $push: recording(operation) },
      )
    },

    async insertInstallation({ publicSiteKey, ...rest }) {
      await installations.updateOne({ _id: publicSiteKey }, { $setOnInsert: rest }, { upsert: true })
    },

    async findInstallations(publicSiteKeys) {
      return (await installations.find({ _id: { $in: publicSiteKeys } }).toArray()).map(toInstallation)
    },

    async listInstallations(workspaceId) {
      return (await installations.find({ workspaceId }).sort({ _id: 1 }).toArray()).map(toInstallation)
    },

    async updateInstallation(publicSiteKey, settings, operation) {
      await installations.updateOne(
        { _id: publicSiteKey, ...unlessRecorded(operation) },
        { $set: fieldsOf(settings), $push: recording(operation) },
      )
    },

    async addOrigin(publicSiteKey, origin) {
      await installations.updateOne({ _id: publicSiteKey }, { $addToSet: { origins: origin } })
    },

    async replaceIdentitySecrets(publicSiteKey, read, secrets, operation) {
      const { matchedCount } = await installations.updateOne(
        { _id: publicSiteKey, identitySecrets: { $eq: read }, ...unlessRecorded(operation) },
        { $set: { identitySecrets: secrets }, $push: recording(operation) },
      )
      return matchedCount === 1 || (await isRecorded(installations, publicSiteKey, operation))
    },

    async anyInstallationAllows(originEntries) {
      const found = await installations.findOne(
        { origins: { $in: originEntries }, enabled: true },
        { projection: { _id: 1 } },
      )
      return found !== null
    },
  }
}

/** Dotted paths, so that a write keeps the neighbouring fields. */
function fieldsOf({ appearance, capabilities, forms, ...plain }: InstallationSettings) {
  const nested = Object.entries({ appearance, capabilities, forms }).flatMap(([part, fields]) =>
    Object.entries(fields ?? {}).map(([name, value]) => [`${part}.${name}`, value]),
  )
  return { ...plain, ...Object.fromEntries(nested) }
}

const toWorkspace = ({ _id, ...rest }: WorkspaceDocument): Workspace => ({ workspaceId: _id, ...rest })
const toConnection = ({ _id, operations: _, ...rest }: ConnectionDocument): Connection => ({
  connectionId: _id,
  ...rest,
})
const toInstallation = ({ _id, operations: _, ...rest }: InstallationDocument): Installation => ({
  publicSiteKey: _id,
  ...rest,
})
