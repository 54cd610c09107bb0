import { invalid } from '../errors.ts'
import { pageTokenOf, readPageToken } from '../page-token.ts'
import { field, integer, text, validate } from '../rules.ts'
import type { EntryQuery, FoundEntry, SearchPlace, SearchSource, SourceKind } from './model.ts'
import type { SearchEntryStore } from './search-entry-store.ts'
import { hasTerms, type SearchTerm, searchTermsOf, snippetOf } from './terms-model.ts'

/** The fields of a conversation by which results are filtered. */
interface SearchedConversation {
  conversationId: string
  workspaceId: string
  status?: 'open' | 'closed'
  assignment?: { agent?: { displayName: string }; operator?: string }
}

/** The current text of a source. */
export interface SourceText {
  /** The parts of the text. All parts together must have the searched words. */
  texts: string[]
  author?: { kind: string; displayName?: string }
}

export interface SearchRequest {
  workspaceId: string
  /** Kinds of texts that the caller may read. Other texts are neither matched nor shown. */
  kinds: readonly SourceKind[]
  query: string
  status?: 'open' | 'closed'
  /** Display name of the assigned agent; null for conversations without an agent. */
  assignee?: { name: string } | { operator: string } | null
  from?: Date
  to?: Date
  limit?: number
  pageToken?: string
}

export interface SearchResult<C> {
  conversation: C
  source: SearchSource
  at: Date
  author?: SourceText['author']
  snippet: ReturnType<typeof snippetOf>
}

export interface Search<C> {
  /**
   * Returns texts that have all words of the query, newest first. A page can have fewer results than
   * `limit`, even none, although `nextPageToken` is set: a call reads a limited number of entries.
   * Errors: `ValidationFailed`.
   */
  find(request: SearchRequest): Promise<{ results: SearchResult<C>[]; nextPageToken?: string }>
}

const maxQuery = 200
const maxWords = 8
const maxPage = 50
const defaultPage = 20
/** A term with fewer entries is rare: all its entries are read. */
const rareEntries = 2000
const conversationsAtOnce = 100
/** Entries that the first step reads if every term is frequent. Each step reads four times as many as the step before. */
const firstStepEntries = 300
const maxStepEntries = 4800
/** Time in milliseconds after which a call reads no further entries. */
const budgetMs = 100

/**
 * Finds texts by their search entries. The entries contain words only: the text of a result is read
 * from its source, which must still have the searched words. So a removed text is never shown.
 */
export function createSearch<C extends SearchedConversation>(dependencies: {
  store: Pick<SearchEntryStore, 'count' | 'matchesOf' | 'matchesAmongNext'>
  /** Returns those of the conversations that are not hidden. */
  conversationsOf: (conversationIds: string[]) => Promise<C[]>
  /** Returns the current text of each source; undefined if the source was removed or is hidden. */
  textsOf: (sources: SearchSource[]) => Promise<(SourceText | undefined)[]>
}): Search<C> {
  const { store, conversationsOf, textsOf } = dependencies

  /**
   * Yields the matching entries in steps, newest first. `end` is the place up to which all entries
   * have been read. It is undefined in the last step. If a term is rare, one query reads all its
   * entries. Otherwise matches are frequent, and each step reads the next entries of the workspace
   * by time.
   */
  async function* matchesOf(query: EntryQuery): AsyncGenerator<{ found: FoundEntry[]; end?: SearchPlace }> {
    const counts = await Promise.all(query.terms.map((term) => store.count(query, term, rareEntries)))
    const fewest = Math.min(...counts)
    if (fewest < rareEntries) {
      const rarest = query.terms[counts.indexOf(fewest)]!
      const found = fewest === 0 ? [] : await store.matchesOf(query, rarest, rareEntries)
      for (let start = 0; start < found.length; start += conversationsAtOnce) {
        const step = found.slice(start, start + conversationsAtOnce)
        yield { found: step, end: start + conversationsAtOnce < found.length ? step.at(-1)!.place : undefined }
      }
      return
    }
    for (let after = query.after, entries = firstStepEntries; ; entries = Math.min(4 * entries, maxStepEntries)) {
      const { found, end } = await store.matchesAmongNext({ ...query, after }, entries)
      yield { found, end }
      if (!end) return
      after = end
    }
  }

  /** Yields those of the entries that the request asks for, with their conversations and texts. */
  async function* resultsOf(found: FoundEntry[], request: SearchRequest, terms: SearchTerm[], textsAtOnce: number) {
    for (let start = 0; start < found.length; start += conversationsAtOnce) {
      const some = found.slice(start, start + conversationsAtOnce)
      const conversationIds = [...new Set(some.map(({ source }) => source.conversationId))]
      const conversations = new Map((await conversationsOf(conversationIds)).map((each) => [each.conversationId, each]))
      const wanted = some.filter(({ source }) => isWanted(conversations.get(source.conversationId), request))
      for (let from = 0; from < wanted.length; from += textsAtOnce) {
        const part = wanted.slice(from, from + textsAtOnce)
        const texts = await textsOf(part.map(({ source }) => source))
        for (const [index, { source, place }] of part.entries()) {
          const current = texts[index]
          if (!current || !hasTerms(current.texts.join(' '), terms)) continue
          const shown = current.texts.find((each) => terms.some((term) => hasTerms(each, [term]))) ?? ''
          const conversation = conversations.get(source.conversationId)!
          const snippet = snippetOf(shown, terms)
          yield { conversation, source, at: place.at, author: current.author, snippet, place }
        }
      }
    }
  }

  return {
    async find(request) {
      const { workspaceId, kinds, query, from, to, limit = defaultPage, pageToken } = request
      validate(field('/query', query, text(1, maxQuery)), field('/limit', limit, integer(1, maxPage)))
      const terms = searchTermsOf(query)
      if (terms.length === 0 || terms.length > maxWords) {
        const rule = terms.length === 0 ? 'format' : 'maxItems'
        throw invalid('/query', rule)
      }
      const list = `search ${workspaceId}`
      const after = readPageToken(list, pageToken)
      const began = performance.now()
      const results: (SearchResult<C> & { place: SearchPlace })[] = []
      const isNewVisitor = distinctVisitors()
      let end: SearchPlace | undefined
      steps: for await (const step of matchesOf({ workspaceId, kinds, terms, from, to, after })) {
        for await (const result of resultsOf(step.found, request, terms, limit + 1)) {
          if (!isNewVisitor(result)) continue
          results.push(result)
          if (results.length > limit) break steps
        }
        end = step.end
        if (performance.now() - began > budgetMs) break
      }
      const page = results.slice(0, limit)
      const next = results.length > limit ? page.at(-1)!.place : end
      return { results: page, nextPageToken: next && pageTokenOf(list, next) }
    },
  }
}

/** Returns a filter that accepts each visitor of a conversation once. A visitor can have many sessions. */
function distinctVisitors() {
  const seen = new Set<string>()
  return ({ source, snippet }: SearchResult<SearchedConversation>) => {
    if (source.kind !== 'visitor') return true
    const key = `${source.conversationId} ${snippet.text}`
    const isNew = !seen.has(key)
    seen.add(key)
    return isNew
  }
}

function isWanted(
  conversation: SearchedConversation | undefined,
  { workspaceId, status, assignee }: SearchRequest,
): boolean {
  if (conversation?.workspaceId !== workspaceId) return false
  if (status !== undefined && conversation.status !== status) return false
  if (assignee === undefined) return true
  const { agent, operator } = conversation.assignment ?? {}
  if (assignee && 'operator' in assignee) return operator === assignee.operator
  return agent?.displayName === assignee?.name
}
