import { createJob } from '../concurrency/job.ts'
import { findConversation } from '../conversations/conversation-access.ts'
import { inboxOf } from '../conversations/inbox.ts'
import type { Core } from '../core.ts'
import type { LogService } from '../log/service.ts'
import { searchIndexOf } from '../search/search-index.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import type { VisitorService } from '../visitors/service.ts'
import type { WakeupService } from '../wakeups/service.ts'
import type { WorkspaceStore } from '../workspaces/workspace-store.ts'
import type { LeadStore } from './lead-store.ts'
import { createLeads } from './leads.ts'
import type { LeadFanOut } from './model.ts'
import type { SuppressionStore } from './suppression-store.ts'
import { createSuppressions, type Suppressions } from './suppressions.ts'

interface LeadStores {
  leads: LeadStore
  sessions: SessionStore
  suppressions: SuppressionStore
  workspaces: WorkspaceStore
}

/** Interval in milliseconds at which a core ends deliveries that an interrupted call left. */
const sweepEveryMs = 60_000

/** @param endDeliveries ends the deliveries of leads with these contact ids */
export function createSuppressionService(
  { bus, logger, now }: Core,
  { suppressions: store, sessions, workspaces: workspaceStore }: LeadStores,
  { wakeups }: WakeupService,
  { idsKey }: VisitorService,
  endDeliveries: (contactIds: string[]) => Promise<void>,
) {
  const suppressions = createSuppressions({
    store,
    sessions,
    workspaceStore,
    endDeliveries,
    idsKey,
    bus,
    wakeups,
    now,
  })
  const sweep = { name: 'end deliveries of suppressed people', run: suppressions.sweep }
  return { suppressions, jobs: [createJob({ ...sweep, everyMs: sweepEveryMs, logger })] }
}

/** The suppression list. Deliveries need it, and leads need both. */
export type SuppressionService = ReturnType<typeof createSuppressionService>

export function createLeadService(
  core: Core,
  { leads: store, sessions, workspaces: workspaceStore }: LeadStores,
  { visitorAccess: access, consents }: VisitorService,
  { log }: LogService,
  { suppressions, fanOut }: { suppressions: Suppressions; fanOut: LeadFanOut },
) {
  const { plannedIds, now } = core
  const conversationAccess = { find: (id: string, scope: string | undefined) => findConversation(core, id, scope) }
  const own = { conversationAccess, inbox: inboxOf(core), searchIndex: searchIndexOf(core) }
  const services = { fanOut, log, access, consents, suppressions, ...own }
  return { leads: createLeads({ store, workspaceStore, sessions, ...services, plannedIds, now }) }
}

export type LeadService = ReturnType<typeof createLeadService>
