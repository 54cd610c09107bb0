import type { SearchTerm } from './terms-model.ts'

/** What a search entry describes. */
export type SearchSource =
  | { kind: 'message'; conversationId: string; sequence: number }
  | { kind: 'note'; conversationId: string; operationId: string }
  | { kind: 'visitor'; conversationId: string; sessionId: string }
  | { kind: 'lead'; conversationId: string; leadId: string }

export type SourceKind = SearchSource['kind']

/** The words of one text of a conversation. The text itself is read from its source. */
export interface SearchEntry {
  source: SearchSource
  workspaceId: string
  at: Date
  terms: string[]
}

/** The texts of one source, to be indexed. */
export type SearchText = Omit<SearchEntry, 'terms'> & { texts: string[] }

/** Place of an entry in the order of the results: newest first. */
export interface SearchPlace {
  at: Date
  id: string
}

export interface EntryQuery {
  workspaceId: string
  /** Only entries of these kinds. Other entries have no effect on the result. */
  kinds: readonly SourceKind[]
  terms: SearchTerm[]
  /** Only entries of this time or later. */
  from?: Date
  /** Only entries before this time. */
  to?: Date
  /** Only entries that come after this place in the order of the results. */
  after?: SearchPlace
}

/** An entry that matches a query, with its place. */
export interface FoundEntry {
  place: SearchPlace
  source: SearchSource
}

/**
 * Maximum number of different words of an entry. Later words of a longer text are not indexed. The
 * limit protects the database from messages with very many words.
 */
export const maxTerms = 400
