import type { GrantTimes } from './grant-times.ts'
import type { OutboxEntry } from './outbox.ts'
import type { KeyValueStorage } from './storage.ts'
import type { SessionContent } from './types.ts'

/** Position of the stream. Sent with a reconnect and a renewal. */
export interface StreamPosition {
  lastEventId?: string
  sequence: number
}

/** Local state of a session. */
export interface SessionNotes {
  position?: StreamPosition
  /** Unsent text of the composer. */
  draft?: string
  /** Messages up to this sequence are read. */
  readTo?: number
  /** Messages up to this sequence were cleared by `resetVisitor` and are not shown again. */
  hiddenTo?: number
}

/** The stored session, so that a reload resumes it. */
export interface SessionRecord extends SessionNotes {
  clientInstanceId: string
  session?: SessionContent
  times?: GrantTimes
  /** How the session before this one ended. After a lasting end, no new session begins. */
  ended?: { event: string }
}

export type SessionRecords = ReturnType<typeof createSessionRecords>

/** Storage key of an installation's session. */
export const sessionRecordKey = (siteKey: string) => `service.widget.1.${siteKey}`

/** Storage key of the session's features. */
export const featureRecordKey = (siteKey: string) => `${sessionRecordKey(siteKey)}.features`

/** The stored records of an installation: the session and its outbox. */
export function createSessionRecords(storage: KeyValueStorage, siteKey: string) {
  const key = sessionRecordKey(siteKey)
  const outboxKey = `${key}.outbox`

  return {
    read(): SessionRecord | undefined {
      const record = parsed<SessionRecord>(key)
      return typeof record?.clientInstanceId === 'string' ? record : undefined
    },

    write: (record: SessionRecord) => storage.setItem(key, JSON.stringify(record)),

    /** Forgets the session, but not the `clientInstanceId`. */
    forgetSession(clientInstanceId: string, ended?: SessionRecord['ended']) {
      this.write({ clientInstanceId, ended })
      this.writeOutbox('', [])
    },

    /** The unsent entries and the session in which they were written. */
    readOutbox(): { sessionId?: string; entries: OutboxEntry[] } {
      const stored = parsed<{ sessionId: string; entries: OutboxEntry[] }>(outboxKey)
      return Array.isArray(stored?.entries) ? stored : { entries: [] }
    },

    writeOutbox(sessionId: string, entries: readonly OutboxEntry[]) {
      if (entries[0]) storage.setItem(outboxKey, JSON.stringify({ sessionId, entries }))
      else storage.removeItem(outboxKey)
    },
  }

  function parsed<Value>(name: string): Value | null | undefined {
    try {
      return JSON.parse(storage.getItem(name) as string)
    } catch {
      return undefined
    }
  }
}
