import type { FieldIssue } from '../../contract/errors.ts'
import type { Core } from '../core.ts'
import { field, integer } from '../rules.ts'
import { type Retention, type RetentionKind, retentionKinds, type WorkspaceSettings } from './model.ts'

/** Maximum of a period of retention, in days. */
const maxDays = 3_650

/**
 * Returns the periods of a workspace in days; 0 means no limit. If the workspace has not set a
 * period, the default of the settings applies.
 */
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

/** Checks the periods of a change. 0 is valid here; it means no limit. */
export function retentionIssues({ retention = {} }: WorkspaceSettings): (FieldIssue | undefined)[] {
  return retentionKinds.map((kind) =>
    field(`/retention/${kind}/days`, retention[kind] ?? undefined, integer(0, maxDays)),
  )
}
