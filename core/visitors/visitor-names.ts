import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'
import type { VisitorName } from '../privacy/visitor-traces-store.ts'
import { field, text, validate } from '../rules.ts'
import type { WorkspaceStore } from '../workspaces/workspace-store.ts'
import type { Sessions } from './sessions.ts'
import type { Subjects } from './subjects.ts'

export interface VisitorNames {
  /** The visitor of a session. Errors: `NotFound`, also for a session of another workspace. */
  ofSession(sessionId: string, workspaceId: string | undefined): Promise<VisitorName>
  /**
   * A verified person by the host's user id, on all connections of a workspace, even if nothing is
   * stored. Errors: `NotFound` for the workspace, `ValidationFailed`.
   */
  ofSubject(workspaceId: string, externalSubject: string): Promise<VisitorName>
}

export function createVisitorNames(dependencies: {
  sessions: Pick<Sessions, 'find'>
  subjects: Pick<Subjects, 'idOf'>
  workspaceStore: Pick<WorkspaceStore, 'findWorkspace' | 'listConnections'>
}): VisitorNames {
  const { sessions, subjects, workspaceStore } = dependencies

  return {
    async ofSession(sessionId, scope) {
      const { workspaceId, visitorId, identity } = await sessions.find(sessionId, scope)
      if (identity) return { workspaceId, browserIds: [], subjectIds: [identity.subjectId] }
      return { workspaceId, browserIds: [visitorId], subjectIds: [] }
    },

    async ofSubject(workspaceId, externalSubject) {
      if (!(await workspaceStore.findWorkspace(workspaceId))) throw new ServiceError(ErrorCode.NOT_FOUND)
      validate(field('/visitor/subject/externalSubject', externalSubject, text(1, 256)))
      const connections = await workspaceStore.listConnections(workspaceId)
      const ids = connections.map(({ connectionId }) => subjects.idOf(connectionId, externalSubject))
      const subjectIds = await Promise.all(ids)
      return { workspaceId, browserIds: [], subjectIds }
    },
  }
}
