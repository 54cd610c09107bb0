const entriesAtMost = 400
const credentialKeys = /grant|token|secret|assertion|authorization|password/i

/**
 * @typedef {'event' | 'request' | 'page'} EntryKind
 * @typedef {{number: number, at: Date, kind: EntryKind, name: string, text: string}} LogEntry
 */

/**
 * What happened, for integrators: the widget's events with their payloads, the calls to the gateway, the page's own steps.
 * Nothing that could be a credential gets in. Payloads are kept as they were at the time.
 *
 * @param {{now: () => Date}} deps
 */
export function createEventLog({ now }) {
  /** @type {LogEntry[]} */
  let entries = []
  let count = 0
  /** @type {Set<(entry: LogEntry | undefined) => void>} */
  const listeners = new Set()

  return {
    /** @param {EntryKind} kind @param {string} name @param {unknown} payload */
    add(kind, name, payload) {
      count += 1
      const entry = { number: count, at: now(), kind, name, text: textOf(payload) }
      entries = [...entries.slice(1 - entriesAtMost), entry]
      for (const listener of listeners) listener(entry)
    },
    entries: () => entries,
    clear() {
      entries = []
      for (const listener of listeners) listener(undefined)
    },
    /** @param {(entry: LogEntry | undefined) => void} listener told of each new entry, and without one when all are gone */
    subscribe(listener) {
      listeners.add(listener)
    },
  }
}

/** @param {LogEntry} entry */
export function lineOf({ at, kind, name, text }) {
  return `${at.toISOString()} ${kind} ${name} ${text.replace(/\s+/g, ' ')}`
}

/** @param {unknown} payload */
function textOf(payload) {
  return JSON.stringify(payload ?? {}, (key, value) => (credentialKeys.test(key) ? '[hidden]' : value), 2)
}
