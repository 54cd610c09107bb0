import type { Entry, Records } from './history.ts'

/** The part of a history between a backup and its restore, as indexes of entries. */
interface Undone {
  from: number
  to: number
}

/** Returns the parts of a history that restores have undone. */
export function undoneParts(entries: Entry[]): Undone[] {
  const parts: Undone[] = []
  for (const [index, { kind }] of entries.entries()) {
    if (kind === 'backed up') parts.push({ from: index, to: Number.POSITIVE_INFINITY })
    const last = parts.at(-1)
    if (kind === 'restored' && last) last.to = index
  }
  return parts
}

/**
 * Returns the entries that still count: without operations, events and leads that a restore has
 * undone. An operation that ran during the time between backup and restore may or may not be in the log.
 */
export function withoutUndone(entries: Entry[], { leads }: Pick<Records, 'leads'>): Entry[] {
  const parts = undoneParts(entries)
  if (parts.length === 0) return entries
  const isUndone = (from: number, to = from) => parts.some((part) => from < part.to && to > part.from)
  const spans = new Map<string, { first: number; last: number }>()
  for (const [index, entry] of entries.entries()) {
    if (entry.kind !== 'sent' && entry.kind !== 'acknowledged') continue
    const first = spans.get(entry.operation)?.first ?? index
    spans.set(entry.operation, { first, last: index })
  }
  const existing = new Set(leads)
  /** Visitors whose streams have not been reset since the last restore. */
  const unreset = new Set<string>()
  const seen = new Set<string>()
  return entries.filter((entry, index) => {
    if (entry.kind === 'acknowledged' || entry.kind === 'not in majority') {
      const span = spans.get(entry.operation)
      return !span || !isUndone(span.first, span.last)
    }
    if (entry.kind === 'restored') for (const visitor of seen) unreset.add(visitor)
    if (entry.kind === 'event') {
      seen.add(entry.visitor)
      if (entry.type === 'replay.reset.required') unreset.delete(entry.visitor)
      else if (isUndone(index) || unreset.has(entry.visitor)) return false
    }
    if (entry.kind === 'lead' || entry.kind === 'withdrawn') return !isUndone(index)
    if (entry.kind === 'delivery') return !isUndone(index) || existing.has(entry.leadId)
    return true
  })
}
