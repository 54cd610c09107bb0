import type { EventLog } from './event-log.ts'
import type { LogHeads } from './log-heads.ts'

export interface LogService {
  log: EventLog
  logHeads: LogHeads
}
