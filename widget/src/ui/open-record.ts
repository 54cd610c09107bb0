import { sessionRecordKey } from '../session-record.ts'
import type { KeyValueStorage } from '../storage.ts'

/** Stores whether the panel is open, so that it opens on the next page of the tab. */
export function createOpenRecord(storage: KeyValueStorage, siteKey: string) {
  const key = `${sessionRecordKey(siteKey)}.open`
  return {
    read: (): boolean => storage.getItem(key) === 'true',
    write: (isOpen: boolean) => (isOpen ? storage.setItem(key, 'true') : storage.removeItem(key)),
  }
}
