import type { GrantTimes } from './grant-times.ts'
import type { OutboxEntry } from './outbox.ts'
import type { KeyValueStorage } from './storage.ts'
import type { SessionContent } from './types.ts'

/** Where the stream stands: what a reconnect and a renewal tell the service. */
export interface StreamPosition {
  lastEventId?: string
  sequence: number
}

/** What the page itself remembers of a session. */
export interface SessionNotes {
  position?: StreamPosition
  /** What the visitor has typed and not sent. */
  draft?: string
  /** Messages up to this sequence are read. */
  readTo?: number
  /** Messages up to this sequence were cleared by `resetVisitor` and are not shown again. */
  hiddenTo?: number
}

/** What is kept of a session in the tab's storage, so that a reload goes on with it. */
export interface SessionRecord extends SessionNotes {
  clientInstanceId: string
  session?: SessionContent
  times?: GrantTimes
  /** How the session before this one ended. After a lasting end, no new session begins. */
  ended?: { event: string }
}

export type SessionRecords = ReturnType<typeof createSessionRecords>

/** Where the record of an installation's session is kept. */
export const sessionRecordKey = (siteKey: string) => `service.widget.1.${siteKey}`

/** Where what a session has beside messages is kept. */
export const featureRecordKey = (siteKey: string) => `${sessionRecordKey(siteKey)}.features`

/** The two keys that the package writes for each installation: the session, and what is still to be sent in it. */
export function createSessionRecords(storage: KeyValueStorage, siteKey: string) {
  const key = sessionRecordKey(siteKey)
  const outboxKey = `${key}.outbox`

  return {
    read(): SessionRecord | undefined {
      const record = parsed<SessionRecord>(key)
      return typeof record?.clientInstanceId === 'string' ? record : undefined
    },

    write: (record: SessionRecord) => storage.setItem(key, JSON.stringify(record)),

    /** Forgets the session, and keeps which browser this is. */
    forgetSession(clientInstanceId: string, ended?: SessionRecord['ended']) {
      this.write({ clientInstanceId, ended })
      this.writeOutbox('', [])
    },

    /** What was still to be sent when the page was left, and the session it was written in. */
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
