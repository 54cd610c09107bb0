import type { Logger } from 'pino'
import { createRecurring, type Recurring } from '../concurrency/recurring.ts'
import type { Subjects } from '../identity/subjects.ts'
import { createVisitorNames, type VisitorNames } from '../identity/visitor-names.ts'
import type { Wakeups } from '../log/wakeups.ts'
import type { Sessions } from '../sessions/sessions.ts'
import type { Database } from '../store/database.ts'
import { createErasureStore } from '../store/erasures.ts'
import { createScreenshotStore } from '../store/screenshots.ts'
import type { SessionStore } from '../store/sessions.ts'
import { createVisitorDataStore } from '../store/visitor-data.ts'
import { createVisitorRemoval } from '../store/visitor-removal.ts'
import { createVisitorTraceStore } from '../store/visitor-traces.ts'
import type { WorkspaceStore } from '../store/workspaces.ts'
import { createErasures, type Erasures } from './erasures.ts'
import { createVisitorExport, type VisitorExport } from './visitor-export.ts'

/** What a visitor may ask for: to see what is kept of them, and to have it removed. */
export interface PrivacyParts {
  visitorNames: VisitorNames
  visitorExport: VisitorExport
  erasures: Erasures
  chores: Recurring[]
}

export interface PrivacyPartsDependencies {
  database: Pick<Database, 'collections' | 'screenshots'>
  sessionStore: SessionStore
  sessions: Pick<Sessions, 'find'>
  subjects: Pick<Subjects, 'idOf'>
  workspaceStore: Pick<WorkspaceStore, 'findWorkspace' | 'listConnections'>
  wakeups: Pick<Wakeups, 'stateChanged'>
  logger: Logger
  now: () => number
}

const workEveryMs = 1000

export function createPrivacyParts(dependencies: PrivacyPartsDependencies): PrivacyParts {
  const { database, sessionStore, sessions, subjects, workspaceStore, wakeups, logger, now } = dependencies
  const { collections } = database
  const traces = createVisitorTraceStore(collections)
  const files = createScreenshotStore(database.screenshots)
  const erasures = createErasures({
    store: createErasureStore(collections),
    traces,
    removal: createVisitorRemoval(collections),
    files,
    sessions: sessionStore,
    wakeups,
    now,
  })
  return {
    visitorNames: createVisitorNames({ sessions, subjects, workspaceStore }),
    visitorExport: createVisitorExport({ traces, data: createVisitorDataStore(collections), files, now }),
    erasures,
    chores: [createRecurring({ name: 'erasure', everyMs: workEveryMs, run: erasures.work, logger })],
  }
}
