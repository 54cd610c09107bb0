import type { Document, Filter } from 'mongodb'
import { perCore } from '../core.ts'
import { insertEach } from '../mongodb/insert-each.ts'
import { findIds } from '../mongodb/with-id.ts'
import type { PageEnd } from '../page-token.ts'
import type { SearchTerm } from './terms-model.ts'

export type SearchSource =
  | { kind: 'message'; conversationId: string; sequence: number }
  | { kind: 'note'; conversationId: string; operationId: string }
  | { kind: 'visitor'; conversationId: string; sessionId: string }
  | { kind: 'lead'; conversationId: string; leadId: string }

export type SourceKind = SearchSource['kind']

/** The words of one text, which is read from its source. */
export interface SearchEntry {
  source: SearchSource
  workspaceId: string
  at: Date
  terms: string[]
}

export type SearchText = Omit<SearchEntry, 'terms'> & { texts: string[] }

export interface EntryQuery {
  workspaceId: string
  /** Entries of other kinds have no effect on the result. */
  kinds: readonly SourceKind[]
  terms: SearchTerm[]
  from?: Date
  to?: Date
  /** Only entries after this place in the order of the results, newest first. */
  after?: PageEnd
}

export interface FoundEntry {
  place: PageEnd
  source: SearchSource
}

export interface SearchEntryDocument {
  /** See `idOf`. One range of ids has the messages and notes of a conversation. */
  _id: string
  workspaceId: string
  at: Date
  terms: string[]
  /** Only entries of sessions and leads have it. */
  conversationId?: string
}

/** The catch-up checks the entries, so writes do not wait for the journal. */
const writeConcern = { w: 1 } as const
const newestFirst = { at: -1, _id: -1 } as const

export const searchEntriesOf = perCore(({ db: { searchEntries: entries, conversations, leads } }) => ({
  async insert(added: SearchEntry[]) {
    if (added.length === 0) return
    const results = await insertEach(entries, added.map(toDocument), { writeConcern })
    const rejected = results.find(({ status }) => status === 'rejected')
    if (rejected) throw (rejected as PromiseRejectedResult).reason
  },

  async replace(changed: SearchEntry[]) {
    await entries.bulkWrite(
      changed.map((entry) => {
        const { _id, ...rest } = toDocument(entry)
        return { updateOne: { filter: { _id }, update: { $set: rest }, upsert: true } }
      }),
      { ordered: false, writeConcern },
    )
  },

  async remove(sources: SearchSource[]) {
    if (sources.length > 0) await entries.deleteMany({ _id: { $in: sources.map(idOf) } })
  },

  async missing<S extends SearchSource>(sources: S[]) {
    const known = new Set(await findIds(entries, { _id: { $in: sources.map(idOf) } }))
    return sources.filter((source) => !known.has(idOf(source)))
  },

  /** Finds hidden conversations too. */
  async workspacesOf(conversationIds: string[]) {
    const found = conversations.find({ _id: { $in: conversationIds } }, { projection: { workspaceId: 1 } })
    return new Map((await found.toArray()).map(({ _id, workspaceId }) => [_id, workspaceId]))
  },

  async leadsAndNotesOf(conversationIds: string[]): Promise<SearchText[]> {
    const haveNotes = { _id: { $in: conversationIds }, 'notes.0': { $exists: true } }
    const noted = await conversations.find(haveNotes, { projection: { workspaceId: 1, notes: 1 } }).toArray()
    const captured = await leads.find({ conversationId: { $in: conversationIds } }).toArray()
    return [
      ...noted.flatMap(({ _id: conversationId, workspaceId, notes = [] }) =>
        notes.map(({ operationId, body, createdAt }) => ({
          source: { kind: 'note' as const, conversationId, operationId },
          workspaceId,
          at: createdAt,
          texts: [body],
        })),
      ),
      ...captured.map(({ _id: leadId, conversationId = '', workspaceId, createdAt, fields }) => ({
        source: { kind: 'lead' as const, conversationId, leadId },
        workspaceId,
        at: createdAt,
        texts: Object.values(fields),
      })),
    ]
  },

  /** Counts entries with the term, up to `limit`. */
  async count({ workspaceId, kinds }: Pick<EntryQuery, 'workspaceId' | 'kinds'>, term: SearchTerm, limit: number) {
    const filter = { workspaceId, terms: pattern(term), ...ofKinds(kinds) }
    return entries.countDocuments(filter, { limit, hint: 'by_term' })
  },

  /** Returns the matches among the first `limit` entries with the term `rarest`, newest first. */
  async matchesOf({ workspaceId, kinds, terms, ...range }: EntryQuery, rarest: SearchTerm, limit: number) {
    const stages = [
      { $match: { workspaceId, terms: pattern(rarest), ...ofKinds(kinds) } },
      // Otherwise the database could merge both `$match` stages and search for another term.
      { $limit: limit },
      { $match: { $and: [...allOf(terms), ...inRange(range)] } },
      { $project: { at: 1, conversationId: 1 } },
      { $sort: newestFirst },
    ]
    return (await entries.aggregate<SearchEntryDocument>(stages, { hint: 'by_term' }).toArray()).map(toFound)
  },

  /**
   * Returns the matches among the next `limit` entries, newest first, and the place of the last entry read.
   */
  async matchesAmongNext({ workspaceId, kinds, terms, ...range }: EntryQuery, limit: number) {
    const next = { workspaceId, $and: [ofKinds(kinds), ...inRange(range)] }
    const hint = 'by_time'
    const last = await entries.findOne(next, { projection: { at: 1 }, sort: newestFirst, skip: limit - 1, hint })
    const stages = [
      { $match: next },
      { $sort: newestFirst },
      { $limit: limit },
      { $match: { $and: allOf(terms) } },
      { $project: { at: 1, conversationId: 1 } },
    ]
    const found = await entries.aggregate<SearchEntryDocument>(stages, { hint }).toArray()
    return { found: found.map(toFound), end: last ? { at: last.at, id: last._id } : undefined }
  },
}))

/** Terms consist of letters and digits, so they need no escaping. */
const pattern = ({ term, isPrefix }: SearchTerm) => (isPrefix ? { $regex: `^${term}` } : term)

const allOf = (terms: SearchTerm[]) => terms.map((term) => ({ terms: pattern(term) }))

function inRange({ from, to, after }: Pick<EntryQuery, 'from' | 'to' | 'after'>): Filter<SearchEntryDocument>[] {
  return [
    ...(from ? [{ at: { $gte: from } }] : []),
    ...(to ? [{ at: { $lt: to } }] : []),
    ...(after ? [{ at: { $lte: after.at } }, { $or: [{ at: { $lt: after.at } }, { _id: { $lt: after.id } }] }] : []),
  ]
}

function toDocument({ source, ...rest }: SearchEntry): SearchEntryDocument {
  const isOwn = source.kind === 'visitor' || source.kind === 'lead'
  return { _id: idOf(source), ...rest, ...(isOwn && { conversationId: source.conversationId }) }
}

function toFound({ _id, at, conversationId }: Pick<SearchEntryDocument, '_id' | 'at' | 'conversationId'>): FoundEntry {
  return { place: { at, id: _id }, source: sourceOf(_id, conversationId) }
}

export function entriesOf(conversationIds: string[]): Document[] {
  return [
    { conversationId: { $in: conversationIds } },
    ...conversationIds.map((id) => ({ _id: { $gte: `${id}:`, $lt: `${id};` } })),
  ]
}

const idPatterns: Record<SourceKind, string> = {
  message: '^[^:]*:[^n]',
  note: '^[^:]*:n:',
  visitor: '^(?!lead_)[^:]*$',
  lead: '^lead_[^:]*$',
}

/**
 * `<conversation>:<sequence>` for a message, `<conversation>:n:<operation>` for a note, the session id for
 * a visitor, and the lead id for a lead.
 */
export function idOf(source: SearchSource): string {
  switch (source.kind) {
    case 'message':
      return `${source.conversationId}:${source.sequence}`
    case 'note':
      return `${source.conversationId}:n:${source.operationId}`
    case 'visitor':
      return source.sessionId
    case 'lead':
      return source.leadId
  }
}

/** Entries of visitors and leads have a `conversationId`. */
function sourceOf(id: string, conversationId: string | undefined): SearchSource {
  if (conversationId !== undefined)
    return id.startsWith('lead_')
      ? { kind: 'lead', conversationId, leadId: id }
      : { kind: 'visitor', conversationId, sessionId: id }
  const [owner = '', place = '', ...operation] = id.split(':')
  return place === 'n'
    ? { kind: 'note', conversationId: owner, operationId: operation.join(':') }
    : { kind: 'message', conversationId: owner, sequence: Number(place) }
}

function ofKinds(kinds: readonly SourceKind[]): { _id?: { $regex: string } } {
  const isEveryKind = Object.keys(idPatterns).every((kind) => kinds.includes(kind as SourceKind))
  return isEveryKind ? {} : { _id: { $regex: kinds.map((kind) => idPatterns[kind]).join('|') } }
}
