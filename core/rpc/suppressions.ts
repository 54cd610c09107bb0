import type { ServiceImpl } from '@connectrpc/connect'
import {
  type SuppressionEntry as EntryMessage,
  SuppressionSchema,
  type WorkspaceService,
} from '#proto/workspace/v1/workspace_pb.js'
import type { Core } from '../core.ts'
import { addSuppressions } from '../deliveries/suppressing.ts'
import { listSuppressions, removeSuppressions, type SuppressionEntry } from '../leads/suppressions.ts'
import { callerOf, requiredWorkspace } from '../transport/caller.ts'
import { auditedWrites, entryCounts } from './policy-changes.ts'
import { toProto } from './proto-values.ts'

export function suppressionCalls(core: Core) {
  const audited = auditedWrites(core)

  return {
    addSuppressions(request, context) {
      const { entries, reason } = request
      const workspaceId = requiredWorkspace(context, request.workspaceId)
      const addedBy = callerOf(context).subject
      const subject = { workspaceId, target: workspaceId, settings: entryCounts(entries) }
      return audited(context, request, subject, () =>
        addSuppressions(core, { workspaceId, entries: entries.map(fromEntry), reason, addedBy }),
      )
    },

    removeSuppressions(request, context) {
      const { entries, suppressionIds } = request
      const workspaceId = requiredWorkspace(context, request.workspaceId)
      const subject = { workspaceId, target: workspaceId, settings: entryCounts(entries, suppressionIds) }
      return audited(context, request, subject, async () => ({
        removed: await removeSuppressions(core, { workspaceId, entries: entries.map(fromEntry), suppressionIds }),
      }))
    },

    async listSuppressions(request, context) {
      const workspaceId = requiredWorkspace(context, request.workspaceId)
      const entry = request.entry && fromEntry(request.entry)
      const { suppressions: found, nextPageToken } = await listSuppressions(core, { ...request, workspaceId, entry })
      return { suppressions: found.map((each) => toProto(SuppressionSchema, each)), nextPageToken }
    },
  } satisfies Partial<ServiceImpl<typeof WorkspaceService>>
}

const fromEntry = ({ of }: EntryMessage): SuppressionEntry => ({ kind: of.case, value: of.value ?? '' })
