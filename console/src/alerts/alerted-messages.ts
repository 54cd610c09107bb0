/** Records for which messages the operator was alerted, for all tabs of the browser. */
export interface AlertedMessages {
  /**
   * Returns true for the first caller per message, over all tabs. Returns false if this or a later
   * message of the conversation was claimed before.
   */
  claim(conversationId: string, sequence: number): Promise<boolean>
}

const storeName = 'conversations'
const keptMs = 7 * 86_400_000

/**
 * Stores the latest message of each conversation in IndexedDB. Its transactions are serialized over
 * all tabs, unlike writes to `localStorage`.
 */
export function createAlertedMessages(factory: () => IDBFactory, owner: string, now: () => number): AlertedMessages {
  const opening = open(factory, `service.console.alerts ${owner}`).then((database) => {
    removeOld(database, now() - keptMs)
    return database
  })
  opening.catch(() => {})

  return {
    async claim(conversationId, sequence) {
      // Without storage, for example in a private window, each tab alerts on its own.
      const database = await opening.catch(() => undefined)
      if (!database) return true
      const transaction = database.transaction(storeName, 'readwrite')
      const store = transaction.objectStore(storeName)
      const found = store.get(conversationId)
      let isFirst = false
      found.onsuccess = () => {
        isFirst = (found.result?.sequence ?? 0) < sequence
        if (isFirst) store.put({ sequence, at: now() }, conversationId)
      }
      await done(transaction)
      return isFirst
    },
  }
}

function open(factory: () => IDBFactory, name: string): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = factory().open(name, 1)
    request.onupgradeneeded = () => request.result.createObjectStore(storeName)
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
}

function removeOld(database: IDBDatabase, before: number) {
  const request = database.transaction(storeName, 'readwrite').objectStore(storeName).openCursor()
  request.onsuccess = () => {
    const cursor = request.result
    if (!cursor) return
    if (cursor.value.at < before) cursor.delete()
    cursor.continue()
  }
}

const done = (transaction: IDBTransaction) =>
  new Promise<void>((resolve, reject) => {
    transaction.oncomplete = () => resolve()
    transaction.onabort = () => reject(transaction.error)
  })
