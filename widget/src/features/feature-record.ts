import type { KeyValueStorage } from '../../../browser/storage.ts'
import { featureRecordKey, isToken } from '../session/session-record.ts'
import type { Activity, Agent, AgentRequest, FormKind, RatingState } from '../vocabulary/types.ts'

/** State that survives a reload. It belongs to one session. */
interface FeatureRecord {
  sessionId?: string
  /** True if the conversation has messages. The forms are shown only before the first message. */
  hasBegun: boolean
  agent?: Agent
  isClosed: boolean
  rating?: RatingState
  activity: Activity[]
  /** Fields and idempotency key of each submission, until the service has accepted it. */
  forms: Partial<Record<FormKind, { key: string; fields: Record<string, string> } | 'submitted'>>
  requests: AgentRequest[]
  /** Ids of the agents' requests that have ended, the newest one last. */
  handled: string[]
}

export type FeatureRecords = ReturnType<typeof createFeatureRecords>

const empty = (): FeatureRecord => ({
  hasBegun: false,
  isClosed: false,
  activity: [],
  forms: {},
  requests: [],
  handled: [],
})

/** Creates the feature record, which is stored in the same storage as the session record. */
export function createFeatureRecords(storage: KeyValueStorage, siteKey: string) {
  const key = featureRecordKey(siteKey)
  let record = empty()

  return {
    current: (): Readonly<FeatureRecord> => record,

    change(part: Partial<FeatureRecord>) {
      record = { ...record, ...part }
      // The data of a submitted form is not stored.
      const activity = record.activity.map((one) => ({ ...one, address: undefined }))
      storage.setItem(key, JSON.stringify({ ...record, activity }))
    },

    /** Assigns the record to a session. It is stored with the next change. */
    begin(sessionId: string) {
      record = { ...record, sessionId }
    },

    forget() {
      record = empty()
      storage.removeItem(key)
    },

    /** Removes the record from the storage. `current` still returns it. */
    unstore: () => storage.removeItem(key),

    /** Reads the record, unless it is damaged, for example because other code of the page has changed it. */
    load() {
      record = empty()
      try {
        const found = { ...empty(), ...(JSON.parse(storage.getItem(key)!) as Partial<FeatureRecord>) }
        if (isWhole(found)) record = found
      } catch {}
    },
  }
}

/** Whether all fields have the types that the features read. Throws if a part is missing. */
function isWhole({ sessionId, agent, activity, forms, requests, handled }: FeatureRecord) {
  const submissions = Object.values(forms).filter((form) => form !== 'submitted')
  const tokens = [sessionId ?? '-', ...handled, ...submissions.map(({ key }) => key), ...requests.map(({ id }) => id)]
  const names = [...(agent ? [agent.displayName] : []), ...activity.flatMap((one) => [one.key, one.type, one.at])]
  const lists = [activity, requests, handled]
  const numbers = [...activity.map(({ sequence }) => sequence), ...requests.map(({ expiresAtMs }) => expiresAtMs)]
  const fields = submissions.map((form) => Object.values(form.fields))
  return (
    lists.every(Array.isArray) &&
    tokens.every(isToken) &&
    [...names, ...fields.flat()].every((text) => typeof text === 'string') &&
    numbers.every(Number.isFinite)
  )
}
