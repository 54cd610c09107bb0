import { sessionRecordKey } from '../session-record.ts'
import type { KeyValueStorage } from '../storage.ts'

/** Whether the chat stands open, kept beside the session: it is open on the next page of the same tab too. */
export function createOpenRecord(storage: KeyValueStorage, siteKey: string) {
  const key = `${sessionRecordKey(siteKey)}.open`
  return {
    read: (): boolean => storage.getItem(key) === 'true',
    write: (isOpen: boolean) => (isOpen ? storage.setItem(key, 'true') : storage.removeItem(key)),
  }
}
