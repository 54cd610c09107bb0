import type { GrantTimes } from './grant-times.ts'
import type { KeyValueStorage } from './storage.ts'
import type { SessionContent, SessionEnd } from './types.ts'

/** Where the stream stands: what a reconnect and a renewal tell the service. */
export interface StreamPosition {
  lastEventId?: string
  sequence: number
}

/** What is kept of a session in the tab's storage, so that a reload goes on with it. */
export interface SessionRecord {
  clientInstanceId: string
  session?: SessionContent
  times?: GrantTimes
  position?: StreamPosition
  /** A condition that a reload must not turn into a fresh, anonymous session. */
  ended?: { event: SessionEnd; code: string }
}

export type SessionRecords = ReturnType<typeof createSessionRecords>

/** Where the record of an installation's session is kept. */
export const sessionRecordKey = (siteKey: string) => `service.widget.1.${siteKey}`

/** The one key that the package writes; one for each installation. */
export function createSessionRecords(storage: KeyValueStorage, siteKey: string) {
  const key = sessionRecordKey(siteKey)
  return {
    read(): SessionRecord | undefined {
      try {
        const record = JSON.parse(storage.getItem(key) ?? 'null') as SessionRecord | null
        return record && typeof record.clientInstanceId === 'string' ? record : undefined
      } catch {
        return undefined
      }
    },
    write: (record: SessionRecord) => storage.setItem(key, JSON.stringify(record)),
    clear: () => storage.removeItem(key),
  }
}
