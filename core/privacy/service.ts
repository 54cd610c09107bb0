import { createJob, type Job } from '../concurrency/job.ts'
import type { CoreKit } from '../kit.ts'
import type { LogService } from '../log/service.ts'
import type { VisitorService } from '../visitors/service.ts'
import { createVisitorNames, type VisitorNames } from '../visitors/visitor-names.ts'
import { createErasures, type Erasures } from './erasures.ts'
import { createVisitorExport, type VisitorExport } from './visitor-export.ts'

/** Export and erasure of one visitor's data. */
export interface PrivacyService {
  visitorNames: VisitorNames
  visitorExport: VisitorExport
  erasures: Erasures
  jobs: Job[]
}

const erasureEveryMs = 1000

export function createPrivacyService(
  { stores, logger, now }: CoreKit,
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
