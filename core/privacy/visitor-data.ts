import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { ScreenshotStore } from '../commands/screenshot-store.ts'
import { ServiceError } from '../errors.ts'
import { field, text, validate } from '../rules.ts'
import type { Sessions, Subjects } from '../visitors/service.ts'
import type { WorkspaceStore } from '../workspaces/workspace-store.ts'
import type { VisitorName } from './model.ts'
import type { VisitorDataStore } from './visitor-data-store.ts'
import type { VisitorTraceStore } from './visitor-trace-store.ts'

export function createVisitorExport(dependencies: {
  traces: VisitorTraceStore
  data: VisitorDataStore
  files: Pick<ScreenshotStore, 'read'>
  now: () => number
}) {
  const { traces, data, files, now } = dependencies

  async function screenshotOf(commandId: unknown, fileId: string) {
    const chunks: Uint8Array[] = []
    for await (const chunk of files.read(fileId)) chunks.push(chunk)
    return { kind: 'screenshot', commandId, data: Buffer.concat(chunks).toString('base64') }
  }

  return {
    /** Yields all data of a visitor as JSON, one object per line. Screenshots are in base64. */
    async *lines(visitor: VisitorName): AsyncIterable<string> {
      for await (const { screenshot, ...record } of data.read(await traces.find(visitor, { until: new Date(now()) }))) {
        if (screenshot === undefined) {
          yield JSON.stringify(record)
          continue
        }
        const { fileId, uploadKey: _, ...described } = screenshot as { fileId: string; uploadKey: string }
        yield JSON.stringify({ ...record, screenshot: described })
        yield JSON.stringify(await screenshotOf(record.commandId, fileId))
      }
    },
  }
}

export type VisitorExport = ReturnType<typeof createVisitorExport>

export function createVisitorNames(dependencies: {
  sessions: Pick<Sessions, 'find'>
  subjects: Pick<Subjects, 'idOf'>
  workspaceStore: Pick<WorkspaceStore, 'findWorkspace' | 'listConnections'>
}) {
  const { sessions, subjects, workspaceStore } = dependencies

  return {
    /**
     * Returns the visitor of a session. Errors: `NotFound` for an unknown session or one of another
     * workspace.
     */
    async ofSession(sessionId: string, scope: string | undefined): Promise<VisitorName> {
      const { workspaceId, visitorId, identity } = await sessions.find(sessionId, scope)
      if (identity) return { workspaceId, browserIds: [], subjectIds: [identity.subjectId] }
      return { workspaceId, browserIds: [visitorId], subjectIds: [] }
    },

    /**
     * Returns the verified visitor with this user id of the host on all connections of a workspace.
     * Does so even if no data of the visitor is stored. Errors: `NotFound` for an unknown workspace,
     * `ValidationFailed`.
     */
    async ofSubject(workspaceId: string, externalSubject: string): Promise<VisitorName> {
      if (!(await workspaceStore.findWorkspace(workspaceId))) throw new ServiceError(ErrorCode.NOT_FOUND)
      validate(field('/visitor/subject/externalSubject', externalSubject, text(1, 256)))
      const connections = await workspaceStore.listConnections(workspaceId)
      const ids = connections.map(({ connectionId }) => subjects.idOf(connectionId, externalSubject))
      const subjectIds = await Promise.all(ids)
      return { workspaceId, browserIds: [], subjectIds }
    },
  }
}

export type VisitorNames = ReturnType<typeof createVisitorNames>
