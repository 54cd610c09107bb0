import { randomBytes } from 'node:crypto'
import type { Core } from '../core.ts'
import { shortHash } from '../keys/keyring.ts'
import { storedKey } from '../stored-key.ts'
import { listConnections } from '../workspaces/workspaces.ts'
import type { Session } from './model.ts'

const storedIdsKey = storedKey('ids', () => randomBytes(32).toString('base64url'))

/**
 * Returns the key with which the ids of browsers and verified visitors are hashed. The ids of known
 * visitors and their bans depend on it.
 */
export const idsKey = async (core: Core): Promise<Uint8Array> =>
  new Uint8Array(Buffer.from(await storedIdsKey(core), 'base64url'))

type Browser = Pick<Session, 'workspaceId' | 'connectionId' | 'clientInstanceId'>
type Visitor = Browser & { identity?: { externalSubject: string } | undefined }

export const browserIdOn = async (core: Core, connectionId: string, clientInstanceId: string): Promise<string> =>
  `vis_${shortHash(await idsKey(core), connectionId, clientInstanceId)}`

export const subjectIdOn = async (core: Core, connectionId: string, externalSubject: string): Promise<string> =>
  `sub_${shortHash(await idsKey(core), 'subject', connectionId, externalSubject)}`

export async function visitorIdsOf(
  core: Core,
  { workspaceId, connectionId, clientInstanceId, identity }: Visitor,
): Promise<VisitorIds> {
  const connections = [...new Set([connectionId, ...(await connectionsOf(core, workspaceId))])]
  const browserIds = await Promise.all(connections.map((id) => browserIdOn(core, id, clientInstanceId)))
  const workspaceIds = [await browserIn(core, workspaceId, clientInstanceId)]
  if (!identity) return { workspaceIds, connectionIds: browserIds.slice(0, 1), browserIds, subjectIds: [] }
  const { externalSubject } = identity
  const subjectIds = await Promise.all(connections.map((id) => subjectIdOn(core, id, externalSubject)))
  workspaceIds.push(await subjectIn(core, workspaceId, externalSubject))
  return { workspaceIds, connectionIds: [browserIds[0]!, subjectIds[0]!], browserIds, subjectIds }
}

/** All ids under which a ban of the subject may be stored. */
export async function banIdsOfSubject(core: Core, workspaceId: string, externalSubject: string): Promise<string[]> {
  const connections = await connectionsOf(core, workspaceId)
  const subjectIds = await Promise.all(connections.map((id) => subjectIdOn(core, id, externalSubject)))
  return [await subjectIn(core, workspaceId, externalSubject), ...subjectIds]
}

/** Ids under which a ban of the browser is stored. Reads no connections. */
export async function banIdsOfBrowser(
  core: Core,
  { workspaceId, connectionId, clientInstanceId }: Browser,
): Promise<string[]> {
  return [await browserIn(core, workspaceId, clientInstanceId), await browserIdOn(core, connectionId, clientInstanceId)]
}

const browserIn = async (core: Core, workspaceId: string, clientInstanceId: string) =>
  `ban_${shortHash(await idsKey(core), 'banned browser', workspaceId, clientInstanceId)}`

const subjectIn = async (core: Core, workspaceId: string, externalSubject: string) =>
  `ban_${shortHash(await idsKey(core), 'banned subject', workspaceId, externalSubject)}`

const connectionsOf = async (core: Core, workspaceId: string) =>
  (await listConnections(core, workspaceId)).map(({ connectionId }) => connectionId)

export interface VisitorIds {
  /** Ids under which a ban in the whole workspace is stored: of the browser and of the subject. */
  workspaceIds: string[]
  /** Ids of the browser and the subject on the session's connection. */
  connectionIds: string[]
  browserIds: string[]
  /** Ids of the verified subject on each connection. */
  subjectIds: string[]
}

/** All ids under which a ban of the visitor may be stored, on any connection. */
export const allIdsOf = ({ workspaceIds, browserIds, subjectIds }: VisitorIds): string[] => [
  ...workspaceIds,
  ...browserIds,
  ...subjectIds,
]
