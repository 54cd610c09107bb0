import type { Wakeups } from './wakeups.ts'

export interface WakeupService {
  wakeups: Wakeups
}
