import type { ScreenshotStore } from '../commands/screenshot-store.ts'
import { createJob, type Job } from '../concurrency/job.ts'
import type { CoreKit } from '../kit.ts'
import type { LogService } from '../log/service.ts'
import type { VisitorService } from '../visitors/service.ts'
import type { SessionStore } from '../visitors/session-store.ts'
import type { WorkspaceStore } from '../workspaces/workspace-store.ts'
import type { ErasureStore } from './erasure-store.ts'
import { createErasures, type Erasures } from './erasures.ts'
import { createVisitorExport, createVisitorNames, type VisitorExport, type VisitorNames } from './visitor-data.ts'
import type { VisitorDataStore, VisitorRemoval, VisitorTraceStore } from './visitor-data-store.ts'

interface PrivacyStores {
  erasures: ErasureStore
  visitorData: VisitorDataStore
  visitorRemoval: VisitorRemoval
  visitorTraces: VisitorTraceStore
  screenshots: ScreenshotStore
  sessions: SessionStore
  workspaces: WorkspaceStore
}

export interface PrivacyService {
  visitorNames: VisitorNames
  visitorExport: VisitorExport
  erasures: Erasures
  jobs: Job[]
}

const erasureEveryMs = 1000

export function createPrivacyService(
  { logger, now }: CoreKit,
  stores: PrivacyStores,
  { wakeups }: LogService,
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
    now,
  })
  return {
    visitorNames: createVisitorNames({ sessions, subjects, workspaceStore: stores.workspaces }),
    visitorExport: createVisitorExport({ traces, data: stores.visitorData, files, now }),
    erasures,
    jobs: [createJob({ name: 'erasure of visitors', everyMs: erasureEveryMs, run: erasures.work, logger })],
  }
}
