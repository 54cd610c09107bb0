import type { Core } from '../core.ts'
import { field, integer } from '../rules.ts'
import { type Retention, type RetentionKind, retentionKinds, type WorkspaceSettings } from './model.ts'

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

/** 0 is valid here; it means no limit. */
export function retentionIssues({ retention = {} }: WorkspaceSettings) {
  return retentionKinds.map((kind) =>
    field(`/retention/${kind}/days`, retention[kind] ?? undefined, integer(0, maxDays)),
  )
}
