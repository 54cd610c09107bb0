const maxEntries = 400
const credentialKeys = /grant|token|secret|assertion|authorization|password/i

/**
 * @typedef {{at: Date, kind: 'event' | 'request' | 'page', name: string, text: string}} LogEntry
 */

/**
 * Records widget events, calls of the gateway and actions of the page. Credentials in payloads are
 * replaced by `[hidden]`.
 */
export function createEventLog({ now = () => new Date() } = {}) {
  /** @type {LogEntry[]} */
  let entries = []
  /** @type {((entry?: LogEntry) => void)[]} */
  const listeners = []

  return {
    /** @param {LogEntry['kind']} kind @param {string} name @param {unknown} payload */
    add(kind, name, payload) {
      const hideCredentials = (/** @type {string} */ key, /** @type {unknown} */ value) =>
        credentialKeys.test(key) ? '[hidden]' : value
      const entry = { at: now(), kind, name, text: JSON.stringify(payload ?? {}, hideCredentials, 2) }
      entries = [...entries.slice(1 - maxEntries), entry]
      for (const listener of listeners) listener(entry)
    },
    entries: () => entries,
    clear() {
      entries = []
      for (const listener of listeners) listener()
    },
    /**
     * @param {(entry?: LogEntry) => void} listener called with each new entry, and with undefined
     * after `clear`
     */
    subscribe: (listener) => void listeners.push(listener),
  }
}

/** @param {LogEntry} entry */
export function lineOf({ at, kind, name, text }) {
  return `${at.toISOString()} ${kind} ${name} ${text.replace(/\s+/g, ' ')}`
}
