import type { KeyValueStorage } from '../../../../browser/storage.ts'
import { sessionRecordKey } from '../../session/session-record.ts'

/** Stores whether the panel is open, so that the next page in this tab opens it again. */
export function createOpenRecord(storage: KeyValueStorage, siteKey: string) {
  const key = `${sessionRecordKey(siteKey)}.open`
  return {
    read: (): boolean => storage.getItem(key) === 'true',
    write: (isOpen: boolean) => (isOpen ? storage.setItem(key, 'true') : storage.removeItem(key)),
  }
}
