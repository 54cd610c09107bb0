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

/** Later words of a longer text are not indexed, which protects the database. */
export const maxTerms = 400
