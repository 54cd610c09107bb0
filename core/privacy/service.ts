import type { ScreenshotStore } from '../commands/screenshot-store.ts'
import { createJob, type Job } from '../concurrency/job.ts'
import type { CoreKit } from '../kit.ts'
import type { ConsentStore } from '../visitors/consent-store.ts'
import type { VisitorService } from '../visitors/service.ts'
import type { SessionStore } from '../visitors/session-store.ts'
import type { WakeupService } from '../wakeups/service.ts'
import type { WorkspaceService } from '../workspaces/service.ts'
import type { WorkspaceStore } from '../workspaces/workspace-store.ts'
import type { ConversationFactsStore } from './conversation-facts-store.ts'
import type { DataRemoval } from './data-removal-store.ts'
import type { DeletionStore } from './deletion-store.ts'
import { createDeletions, type Deletions } from './deletions.ts'
import type { ErasureStore } from './erasure-store.ts'
import { createErasures, type Erasures } from './erasures.ts'
import { createPacedRemoval } from './paced-removal.ts'
import type { RemovalStore } from './removal-store.ts'
import { createRemovals, type Removals } from './removals.ts'
import { createRetention, type Retention } from './retention.ts'
import type { RetentionStore } from './retention-store.ts'
import { createVisitorExport, createVisitorNames, type VisitorExport, type VisitorNames } from './visitor-data.ts'
import type { VisitorDataStore, VisitorRemoval } from './visitor-data-store.ts'
import type { VisitorTraceStore } from './visitor-trace-store.ts'

interface PrivacyStores {
  erasures: ErasureStore
  visitorData: VisitorDataStore
  visitorRemoval: VisitorRemoval
  visitorTraces: VisitorTraceStore
  screenshots: ScreenshotStore
  sessions: SessionStore
  workspaces: WorkspaceStore
  consents: ConsentStore
  dataRemoval: DataRemoval
  deletions: DeletionStore
  removals: RemovalStore
  retention: RetentionStore
  conversationFacts: ConversationFactsStore
}

export interface PrivacyService {
  visitorNames: VisitorNames
  visitorExport: VisitorExport
  erasures: Erasures
  deletions: Deletions
  removals: Removals
  retention: Retention
  jobs: Job[]
}

const erasureEveryMs = 1000
/**
 * Interval of the sweep in milliseconds. It is below a second, so that a changed policy takes
 * effect within a second.
 */
const sweepEveryMs = 700

export function createPrivacyService(
  { plannedIds, metrics, logger, now }: CoreKit,
  stores: PrivacyStores,
  { wakeups, sweepWakeups }: WakeupService,
  { retentionOf }: WorkspaceService,
  { sessions, subjects }: VisitorService,
): PrivacyService {
  const { visitorTraces: traces, screenshots: files } = stores
  const erasures = createErasures({
    store: stores.erasures,
    traces,
    removal: stores.visitorRemoval,
    files,
    sessions: stores.sessions,
    wakeups,
    sweepWakeups,
    now,
  })
  const { dataRemoval: data, retention: store, conversationFacts: factStore } = stores
  const paced = createPacedRemoval({ data, factStore, consents: stores.consents, files, metrics })
  const deletions = createDeletions({
    store: stores.deletions,
    removals: stores.removals,
    removeConversations: (workspaceId, ids) =>
      removals.begin({ workspaceId, kind: 'conversations', ids, isDeletion: true }),
    data,
    factStore,
    paced,
    plannedIds,
    wakeups,
    now,
  })
  const removals: Removals = createRemovals({
    store: stores.removals,
    data,
    retention: store,
    factStore,
    retentionOf,
    paced,
    runDeletionStep: deletions.runStep,
    wakeups,
    sweepWakeups,
    metrics,
    now,
  })
  const retention = createRetention({
    store,
    factStore,
    data,
    removals,
    removalStore: stores.removals,
    retentionOf,
    paced,
    metrics,
    now,
  })
  return {
    deletions,
    removals,
    retention,
    visitorNames: createVisitorNames({ sessions, subjects, workspaceStore: stores.workspaces }),
    visitorExport: createVisitorExport({ traces, data: stores.visitorData, files, now }),
    erasures,
    jobs: [
      createJob({ name: 'erasure of visitors', everyMs: erasureEveryMs, run: erasures.work, logger }),
      createJob({ name: 'sweep of old data', everyMs: sweepEveryMs, run: retention.sweep, logger }),
      createJob({ name: 'removal of old data', everyMs: erasureEveryMs, run: removals.work, logger }),
    ],
  }
}
