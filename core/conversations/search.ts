import { byKey, slicesOf } from '../../platform/concurrency/batcher.ts'
import { type Core, perCore } from '../core.ts'
import { invalid } from '../errors.ts'
import type { Conversation } from '../log/conversation-model.ts'
import { findConversations } from '../log/conversation-store.ts'
import { eventsOf } from '../log/event-store.ts'
import { notErasing } from '../mongodb/not-erasing.ts'
import { type PageEnd, type PageRequest, pageTokenOf, readPageToken } from '../page-token.ts'
import { field, integer, text, validate } from '../rules.ts'
import {
  type EntryQuery,
  type FoundEntry,
  idOf,
  type SearchSource,
  type SourceKind,
  searchEntriesOf,
} from '../search/search-entry-store.ts'
import { visitorTexts } from '../search/search-index.ts'
import { hasTerms, type SearchTerm, searchTermsOf, snippetOf } from '../search/terms-model.ts'
import { sessionStoreOf } from '../sessions/session-store.ts'
import type { Assignee } from './model.ts'
import { notesOf } from './notes.ts'

interface SourceText {
  /** The parts of the text. All parts together must have the searched words. */
  texts: string[]
  author?: { kind: string; displayName?: string }
}

export interface SearchRequest extends PageRequest {
  workspaceId: string
  /** Kinds of texts that the caller may read. Other texts are neither matched nor shown. */
  kinds: readonly SourceKind[]
  query: string
  status?: 'open' | 'closed'
  assignee?: Assignee
  from?: Date
  to?: Date
}

export interface SearchResult {
  conversation: Conversation
  source: SearchSource
  at: Date
  author?: SourceText['author']
  snippet: ReturnType<typeof snippetOf>
}

const maxQuery = 200
const maxWords = 8
const maxPage = 50
const defaultPage = 20
/** A term with fewer entries is rare: all its entries are read. */
const rareEntries = 2000
const conversationsAtOnce = 100
/** Entries that the first step reads if every term is frequent. Each further step reads four times as many. */
const firstStepEntries = 300
const maxStepEntries = 4800
/** Time in milliseconds after which a call reads no further entries. */
const budgetMs = 100

/**
 * Returns texts that have all words of the query, newest first. A page can have fewer results than
 * `limit`, even none, although `nextPageToken` is set: a call reads a limited number of entries.
 * The entries contain words only: the text of a result is read from its source, which must still have
 * the searched words. So a removed text is never shown. Errors: `ValidationFailed`.
 */
export async function searchTexts(
  core: Core,
  request: SearchRequest,
): Promise<{ results: SearchResult[]; nextPageToken?: string }> {
  const { workspaceId, kinds, query, from, to, limit = defaultPage, pageToken } = request
  validate(field('/query', query, text(1, maxQuery)), field('/limit', limit, integer(1, maxPage)))
  const terms = searchTermsOf(query)
  if (terms.length === 0) throw invalid('/query', 'format')
  if (terms.length > maxWords) throw invalid('/query', 'maxItems')
  const list = `search ${workspaceId}`
  const after = readPageToken(list, pageToken)
  const began = performance.now()
  const results: (SearchResult & { place: PageEnd })[] = []
  const isNewVisitor = distinctVisitors()
  let end: PageEnd | undefined
  steps: for await (const step of matchesOf(core, { workspaceId, kinds, terms, from, to, after })) {
    for await (const result of resultsOf(core, step.found, request, terms, limit + 1)) {
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
}

/**
 * Yields the matching entries in steps, newest first. `end` is the place up to which all entries
 * have been read, undefined in the last step. If a term is rare, one query reads all its entries.
 * Otherwise matches are frequent, and each step reads the next entries of the workspace by time.
 */
async function* matchesOf(core: Core, query: EntryQuery): AsyncGenerator<{ found: FoundEntry[]; end?: PageEnd }> {
  const store = searchEntriesOf(core)
  const counts = await Promise.all(query.terms.map((term) => store.count(query, term, rareEntries)))
  const fewest = Math.min(...counts)
  if (fewest < rareEntries) {
    const rarest = query.terms[counts.indexOf(fewest)]!
    const found = fewest === 0 ? [] : await store.matchesOf(query, rarest, rareEntries)
    for (const step of slicesOf(found, conversationsAtOnce)) {
      const last = step.at(-1)!
      yield { found: step, end: last === found.at(-1) ? undefined : last.place }
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

async function* resultsOf(
  core: Core,
  found: FoundEntry[],
  request: SearchRequest,
  terms: SearchTerm[],
  textsAtOnce: number,
) {
  for (const some of slicesOf(found, conversationsAtOnce)) {
    const conversationIds = [...new Set(some.map(({ source }) => source.conversationId))]
    const conversations = byKey(await findConversations(core, conversationIds), (each) => each.conversationId)
    const wanted = some.filter(({ source }) => isWanted(conversations.get(source.conversationId), request))
    for (const part of slicesOf(wanted, textsAtOnce)) {
      const texts = await sourceTextsOf(core)(part.map(({ source }) => source))
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

/** Reads the current texts of sources, in their order. Undefined for one that was removed or is hidden. */
export const sourceTextsOf = perCore((core) => {
  const { db } = core
  return async (sources: SearchSource[]): Promise<(SourceText | undefined)[]> => {
    const places = sources.flatMap((source) => (source.kind === 'message' ? source : []))
    const noted = [...new Set(sources.flatMap((each) => (each.kind === 'note' ? each.conversationId : [])))]
    const events = eventsOf(core)
    const leadIds = sources.flatMap((source) => (source.kind === 'lead' ? source.leadId : []))
    const [messages, notes, visitors, captured] = await Promise.all([
      events.at(places.map(({ conversationId, sequence }) => ({ conversationId, sequence }))),
      Promise.all(noted.map(async (id) => [id, await notesOf(core, id)] as const)),
      sessionStoreOf(core).find(sources.flatMap((source) => (source.kind === 'visitor' ? source.sessionId : []))),
      db.leads.find({ _id: { $in: leadIds }, ...notErasing }, { batchSize: leadIds.length + 1 }).toArray(),
    ])
    const texts = new Map<string, SourceText>()
    const put = (source: SearchSource, text: SourceText) => void texts.set(idOf(source), text)
    for (const { conversationId, sequence, message } of messages)
      if (message) put({ kind: 'message', conversationId, sequence }, { texts: [message.body], author: message.author })
    for (const [conversationId, theirs] of notes)
      for (const { operationId, body, author } of theirs)
        put(
          { kind: 'note', conversationId, operationId },
          { texts: [body], author: { kind: 'agent', displayName: author.displayName } },
        )
    for (const { sessionId, conversationId, identity } of visitors)
      if (identity) put({ kind: 'visitor', conversationId, sessionId }, { texts: visitorTexts(identity) })
    for (const { _id: leadId, conversationId = '', fields } of captured)
      put({ kind: 'lead', conversationId, leadId }, { texts: Object.values(fields) })
    return sources.map((source) => texts.get(idOf(source)))
  }
})

/** Accepts each visitor of a conversation once. A visitor can have many sessions. */
function distinctVisitors() {
  const seen = new Set<string>()
  return ({ source, snippet }: SearchResult) => {
    if (source.kind !== 'visitor') return true
    const key = `${source.conversationId} ${snippet.text}`
    const isNew = !seen.has(key)
    seen.add(key)
    return isNew
  }
}

function isWanted(conversation: Conversation | undefined, { workspaceId, status, assignee }: SearchRequest) {
  if (conversation?.workspaceId !== workspaceId) return false
  if (status !== undefined && conversation.status !== status) return false
  if (assignee === undefined) return true
  const { agent, operator } = conversation.assignment ?? {}
  if (assignee && 'operator' in assignee) return operator === assignee.operator
  return agent?.displayName === assignee?.name
}
