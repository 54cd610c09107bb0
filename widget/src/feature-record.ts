import { featureRecordKey } from './session-record.ts'
import type { KeyValueStorage } from './storage.ts'
import type { Activity, Agent, AgentRequest, FormKind } from './types.ts'

/** What a reload of the page must not forget beyond the session itself. Bound to one session. */
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
  /** Begins for a session. Answers whether what is held belongs to another one, which is then to be forgotten. */
  begin(sessionId: string): boolean
  forget(): void
  /** Reads again what is kept; a page that starts does so. */
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

/** Lives where the session lives, under a key beside it: the tab's storage or memory. */
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
