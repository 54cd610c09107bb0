import type { IdsKey } from '../keys/ids-key.ts'
import { shortHash } from '../keys/keyring.ts'
import type { Session } from './model.ts'
import type { VisitorIds } from './visitor-ids-model.ts'

type Browser = Pick<Session, 'workspaceId' | 'connectionId' | 'clientInstanceId'>
type Visitor = Browser & { identity?: { externalSubject: string } | undefined }

/** Computes the ids of visitors: keyed hashes of the browser's id and of the host's user id. */
export interface VisitorIdentifier {
  browserOn(connectionId: string, clientInstanceId: string): Promise<string>
  subjectOn(connectionId: string, externalSubject: string): Promise<string>
  of(visitor: Visitor): Promise<VisitorIds>
  /** Returns all ids under which a ban of the subject may be stored. */
  ofSubject(workspaceId: string, externalSubject: string): Promise<string[]>
  /** Returns ids under which a ban of the browser is stored. Reads no connections. */
  ofBrowser(browser: Browser): Promise<string[]>
}

export function createVisitorIdentifier(dependencies: {
  idsKey: IdsKey
  listConnections: (workspaceId: string) => Promise<{ connectionId: string }[]>
}): VisitorIdentifier {
  const { idsKey, listConnections } = dependencies

  const browserOn = async (connectionId: string, clientInstanceId: string) =>
    `vis_${shortHash(await idsKey(), connectionId, clientInstanceId)}`

  const subjectOn = async (connectionId: string, externalSubject: string) =>
    `sub_${shortHash(await idsKey(), 'subject', connectionId, externalSubject)}`

  const browserIn = async (workspaceId: string, clientInstanceId: string) =>
    `ban_${shortHash(await idsKey(), 'banned browser', workspaceId, clientInstanceId)}`

  const subjectIn = async (workspaceId: string, externalSubject: string) =>
    `ban_${shortHash(await idsKey(), 'banned subject', workspaceId, externalSubject)}`

  const connectionsOf = async (workspaceId: string) =>
    (await listConnections(workspaceId)).map(({ connectionId }) => connectionId)

  return {
    browserOn,
    subjectOn,

    async of({ workspaceId, connectionId, clientInstanceId, identity }) {
      const connections = [...new Set([connectionId, ...(await connectionsOf(workspaceId))])]
      const browserIds = await Promise.all(connections.map((id) => browserOn(id, clientInstanceId)))
      const workspaceIds = [await browserIn(workspaceId, clientInstanceId)]
      if (!identity) return { workspaceIds, connectionIds: browserIds.slice(0, 1), browserIds, subjectIds: [] }
      const { externalSubject } = identity
      const subjectIds = await Promise.all(connections.map((id) => subjectOn(id, externalSubject)))
      workspaceIds.push(await subjectIn(workspaceId, externalSubject))
      return { workspaceIds, connectionIds: [browserIds[0]!, subjectIds[0]!], browserIds, subjectIds }
    },

    async ofSubject(workspaceId, externalSubject) {
      const connections = await connectionsOf(workspaceId)
      const subjectIds = await Promise.all(connections.map((id) => subjectOn(id, externalSubject)))
      return [await subjectIn(workspaceId, externalSubject), ...subjectIds]
    },

    async ofBrowser({ workspaceId, connectionId, clientInstanceId }) {
      return [await browserIn(workspaceId, clientInstanceId), await browserOn(connectionId, clientInstanceId)]
    },
  }
}
