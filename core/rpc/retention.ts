import type { MessageInitShape } from '@bufbuild/protobuf'
import type { Retention as RetentionMessage, RetentionSchema } from '#proto/workspace/v1/workspace_pb.js'
import type { Core } from '../core.ts'
import { validate } from '../rules.ts'
import { retentionKinds, type Workspace, type WorkspaceSettings } from '../workspaces/model.ts'
import { retentionOf } from '../workspaces/retention.ts'

/** Converts the periods of a request. Errors: `ValidationFailed` for a period below a day. */
export function fromRetention(message: RetentionMessage): WorkspaceSettings['retention'] {
  return Object.fromEntries(
    retentionKinds.flatMap((kind) => {
      const period = message[kind]?.period
      if (message[kind] === undefined) return []
      if (period?.case === 'forever')
        validate(period.value ? undefined : { path: `/retention/${kind}/forever`, rule: 'const' })
      // 0 days are rejected, because the stored value 0 means no limit.
      if (period?.case === 'days')
        validate(period.value > 0 ? undefined : { path: `/retention/${kind}/days`, rule: 'minimum' })
      return [[kind, period?.case === 'days' ? period.value : period?.case === 'forever' ? 0 : null]]
    }),
  )
}

export function toRetention(core: Core, workspace: Workspace): MessageInitShape<typeof RetentionSchema> {
  const periods = retentionOf(core, workspace)
  return Object.fromEntries(
    retentionKinds.map((kind) => [
      kind,
      {
        period:
          periods[kind] === 0
            ? { case: 'forever' as const, value: true }
            : { case: 'days' as const, value: periods[kind] },
        isDefault: workspace.retention?.[kind] === undefined,
      },
    ]),
  )
}
