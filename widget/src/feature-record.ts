import { featureRecordKey } from './session-record.ts'
import type { KeyValueStorage } from './storage.ts'
import type { Activity, Agent, AgentRequest, FormKind } from './types.ts'

/** State of features that must survive a reload. Bound to one session. */
export interface FeatureRecord {
  sessionId?: string
  /** The conversation has a message of either side: forms that come before the first message are past. */
  hasBegun: boolean
  agent?: Agent
  isClosed: boolean
  activity: Activity[]
  /** A submission under way with the key that all its attempts carry; the fields are dropped once the service has them. */
  forms: Partial<Record<FormKind, { key: string; fields: Record<string, string> } | 'submitted'>>
  requests: AgentRequest[]
  /** Ids of requests that are over, the newest last. */
  handled: string[]
}

export interface FeatureRecords {
  current(): Readonly<FeatureRecord>
  change(part: Partial<FeatureRecord>): void
  /** Binds the record to a session. Returns true if it belongs to another session; the caller must then call `forget`. */
  begin(sessionId: string): boolean
  forget(): void
  /** Reads the stored record. */
  load(): void
}

const empty = (): FeatureRecord => ({
  hasBegun: false,
  isClosed: false,
  activity: [],
  forms: {},
  requests: [],
  handled: [],
})

/** Stored beside the session record, in the tab's storage or in memory. */
export function createFeatureRecords(storage: KeyValueStorage, siteKey: string): FeatureRecords {
  const key = featureRecordKey(siteKey)
  let record = empty()

  return {
    current: () => record,

    change(part) {
      record = { ...record, ...part }
      storage.setItem(key, JSON.stringify(record))
    },

    begin(sessionId) {
      const isOther = record.sessionId !== undefined && record.sessionId !== sessionId
      if (!isOther) record = { ...record, sessionId }
      return isOther
    },

    forget() {
      record = empty()
      storage.removeItem(key)
    },

    load() {
      try {
        record = { ...empty(), ...(JSON.parse(storage.getItem(key) ?? '{}') as Partial<FeatureRecord>) }
      } catch {
        record = empty()
      }
    },
  }
}
