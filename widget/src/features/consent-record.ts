import type { KeyValueStorage } from '../../../browser/storage.ts'
import { sessionRecordKey } from '../session/session-record.ts'
import type { ConsentDecision, SessionView, WidgetConfig } from '../vocabulary/types.ts'

/** The visitor's last decision, as the tab stores it. */
interface ConsentRecord {
  sessionId?: string
  isVerified: boolean
  policyVersion: string
  decision: ConsentDecision
}

export type ConsentRecords = ReturnType<typeof createConsentRecords>

export function createConsentRecords(
  storage: KeyValueStorage,
  siteKey: string,
  session: () => SessionView | undefined,
) {
  const key = `${sessionRecordKey(siteKey)}.consent`

  return {
    decided,
    keep: (policyVersion: string, decision: ConsentDecision) =>
      write({ sessionId: session()?.sessionId, isVerified: isVerified(), policyVersion, decision }),
    forget: () => storage.removeItem(key),

    /**
     * Returns true if the page may tell the service what the visitor does: which page is shown,
     * whether they type and whether they see the chat. False while a required consent is not granted.
     */
    mayObserve(config: WidgetConfig | undefined): boolean {
      const { required, policyVersion = '' } = config?.consent ?? {}
      if (!config || !required) return config !== undefined
      // Without a session, it is unknown whether the verified visitor of the record is still here.
      return (session() !== undefined || !read()?.isVerified) && decided(policyVersion) === 'granted'
    },
  }

  function decided(policyVersion: string): ConsentDecision | undefined {
    const record = read()
    if (!record) return undefined
    const { sessionId } = session() ?? {}
    if (sessionId && record.sessionId !== sessionId) {
      // The decision of an earlier verified visitor. Another person may use the browser now.
      if (record.isVerified) return void storage.removeItem(key)
      write({ ...record, sessionId, isVerified: isVerified() })
    }
    return record.policyVersion === policyVersion ? record.decision : undefined
  }

  function isVerified() {
    return session()?.identity.state === 'verified'
  }

  function read(): ConsentRecord | undefined {
    try {
      return JSON.parse(storage.getItem(key)!) ?? undefined
    } catch {
      return undefined
    }
  }

  function write(record: ConsentRecord) {
    storage.setItem(key, JSON.stringify(record))
  }
}
