import type { ScreenshotStore } from '../commands/screenshot-store.ts'
import { createJob } from '../concurrency/job.ts'
import type { Core } from '../core.ts'
import { type DeliveriesOf, recallDeliveries as recall } from '../deliveries/sources.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import type { VisitorService } from '../visitors/service.ts'
import { sweepWakeups, type Wakeups } from '../wakeups/wakeups.ts'
import type { WorkspaceService } from '../workspaces/service.ts'
import type { WorkspaceStore } from '../workspaces/workspace-store.ts'
import type { ConversationFactsStore } from './conversation-facts-store.ts'
import type { DataStore } from './data-store.ts'
import type { DeletionStore } from './deletion-store.ts'
import { createDeletions, createObjectList } from './deletions.ts'
import { createErasures, createVisitorList } from './erasures.ts'
import { createOldDataList } from './old-data.ts'
import type { RemovalStore } from './removal-store.ts'
import { createPacedRemoval, createRemovals, type Removals } from './removals.ts'
import { createRetention } from './retention.ts'
import type { RetentionStore } from './retention-store.ts'
import { createVisitorExport, createVisitorNames } from './visitor-data.ts'
import type { VisitorDataStore } from './visitor-data-store.ts'
import type { VisitorTraceStore } from './visitor-trace-store.ts'

interface PrivacyStores {
  visitorData: VisitorDataStore
  visitorTraces: VisitorTraceStore
  screenshots: ScreenshotStore
  sessions: SessionStore
  workspaces: WorkspaceStore
  data: DataStore
  deletions: DeletionStore
  removals: RemovalStore
  retention: RetentionStore
  conversationFacts: ConversationFactsStore
}

/** Interval in milliseconds at which a core looks for work that another one has left. */
const sweepEveryMs = 60_000

export function createPrivacyService(
  core: Core,
  stores: PrivacyStores,
  { wakeups }: { wakeups: Wakeups },
  { retentionOf }: WorkspaceService,
  { sessions, subjects }: VisitorService,
) {
  const { bus, plannedIds, metrics, logger, now } = core
  const recallDeliveries = (of: DeliveriesOf) => recall(core, of)
  const { data, removals: store, conversationFacts: factStore, visitorTraces: traces } = stores
  const paced = createPacedRemoval(metrics)
  const oldData = { data, retention: stores.retention, factStore, retentionOf, wakeups, metrics, now }
  const begin: Removals['begin'] = (removal) => removals.begin(removal)
  const object = createObjectList({
    store: stores.deletions,
    removals: store,
    begin,
    data,
    factStore,
    paced,
    wakeups,
  })

  /** Tells the streams of this process which conversations and leads are hidden now. */
  async function announceRemoved(changed: string[]) {
    const hidden = await data.hiddenOf(changed)
    for (const [workspaceId, found] of Map.groupBy(hidden, (each) => each.workspaceId))
      bus.emit(
        'removed',
        workspaceId,
        found.map(({ id }) => id),
      )
  }
  bus.on('changed', (changed) => {
    const ids = changed.filter((id) => /^(cnv|lead)_/.test(id))
    if (ids.length > 0)
      announceRemoved(ids).catch((error: Error) =>
        logger.warn(
          { reason: error.name },
          'removal not announced; streams show the removed data until they reconnect',
        ),
      )
  })

  const removals = createRemovals({
    store,
    lists: {
      visitor: createVisitorList({ store, traces, data, sessions: stores.sessions, wakeups, recallDeliveries }),
      conversations: createOldDataList('conversations', oldData),
      leads: createOldDataList('leads', oldData),
      workspace: object,
      connection: object,
      installation: object,
      subscription: object,
    },
    paced,
    sweepWakeups: () => sweepWakeups(core),
    bus,
    now,
  })
  const retention = createRetention({
    store: stores.retention,
    factStore,
    data,
    removals,
    removalStore: store,
    retentionOf,
    paced,
    now,
  })
  return {
    deletions: createDeletions({
      store: stores.deletions,
      removalStore: store,
      removals,
      list: object,
      plannedIds,
      now,
    }),
    removals,
    retention,
    visitorNames: createVisitorNames({ sessions, subjects, workspaceStore: stores.workspaces }),
    visitorExport: createVisitorExport({ traces, data: stores.visitorData, files: stores.screenshots, now }),
    erasures: createErasures({ store, removals, traces, now }),
    jobs: [
      createJob({ name: 'sweep of old data', everyMs: sweepEveryMs, run: retention.sweep, logger }),
      createJob({ name: 'removal of data', everyMs: sweepEveryMs, run: removals.work, logger }),
    ],
  }
}

export type PrivacyService = ReturnType<typeof createPrivacyService>
