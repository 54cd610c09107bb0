import type { GrantTimes } from './grant-times.ts'
import type { OutboxEntry } from './outbox.ts'
import type { KeyValueStorage } from './storage.ts'
import type { SessionContent } from './types.ts'

/**
 * Position of the client in the event log. Sent when the stream reconnects and when the grant is
 * renewed.
 */
export interface StreamPosition {
  lastEventId?: string
  sequence: number
}

/** State of a session that only the browser stores. */
export interface SessionNotes {
  position?: StreamPosition
  /** Unsent text of the message field. */
  draft?: string
  /** Sequence of the last message that the visitor has read. */
  readTo?: number
  /** Sequence of the last message that stays hidden, because `resetVisitor` removed the history. */
  hiddenTo?: number
}

/** The stored session that the page resumes after a reload. */
export interface SessionRecord extends SessionNotes {
  clientInstanceId: string
  session?: SessionContent
  times?: GrantTimes
  /** A renewal without a response yet. A repeat must send the same key and input. */
  renewal?: { key: string; lastSeenEventId?: string; askedAtMs: number }
  /** Event that ended the previous session. After some events, no new session may start. */
  ended?: { event: string }
}

export type SessionRecords = ReturnType<typeof createSessionRecords>

/** Returns the key under which the session of an installation is stored. */
export const sessionRecordKey = (siteKey: string) => `service.widget.1.${siteKey}`

/**
 * Returns the storage key of the feature state (typing, forms, agents' requests) of an
 * installation's session.
 */
export const featureRecordKey = (siteKey: string) => `${sessionRecordKey(siteKey)}.features`

/** Reads and writes the stored session and the stored outbox of an installation. */
export function createSessionRecords(storage: KeyValueStorage, siteKey: string) {
  const key = sessionRecordKey(siteKey)
  const outboxKey = `${key}.outbox`

  return {
    read(): SessionRecord | undefined {
      const record = parsed<SessionRecord>(key)
      return typeof record?.clientInstanceId === 'string' ? record : undefined
    },

    write: (record: SessionRecord) => storage.setItem(key, JSON.stringify(record)),

    /** Deletes the stored session and outbox. Keeps the `clientInstanceId`. */
    forgetSession(clientInstanceId: string, ended?: SessionRecord['ended']) {
      this.write({ clientInstanceId, ended })
      this.writeOutbox('', [])
    },

    /** Returns the stored unsent messages and the id of their session. */
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
