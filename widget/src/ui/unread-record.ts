import { sessionRecordKey } from '../session-record.ts'
import type { KeyValueStorage } from '../storage.ts'

/** How many messages the visitor has not seen, kept beside the session: the next page of the same site shows it too. */
export function createUnreadRecord(storage: KeyValueStorage, siteKey: string) {
  const key = `${sessionRecordKey(siteKey)}.unread`
  return {
    read: (): number => Math.max(0, Math.trunc(Number(storage.getItem(key)))) || 0,
    write: (count: number) => (count > 0 ? storage.setItem(key, String(count)) : storage.removeItem(key)),
  }
}
