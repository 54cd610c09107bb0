import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { computed, signal } from '@preact/signals'
import { ConversationStatus, type SearchResult } from '#proto/messaging/v1/messaging_pb.js'
import type { Api } from '../api.ts'
import { describeFailure, type Failure } from '../failures.ts'

export interface SearchQuery {
  text: string
  status: 'open' | 'closed' | 'all'
  assignee: 'anyone' | 'me' | 'nobody'
  /** Age of the oldest text in days; 0 for any age. */
  days: number
}

export type Search = ReturnType<typeof createSearch>

/** Time after the last change of the query until the search begins. */
const pauseMs = 200
/**
 * Maximum number of pages without a result that one step loads. The service ends a page early if
 * the words are frequent but rarely occur together.
 */
const maxEmptyPages = 20
const statuses = {
  open: ConversationStatus.OPEN,
  closed: ConversationStatus.CLOSED,
  all: ConversationStatus.UNSPECIFIED,
}
const start: SearchQuery = { text: '', status: 'all', assignee: 'anyone', days: 0 }

/** Searches the conversations of the workspace on the service. */
export function createSearch({
  messaging,
  me,
  now = Date.now,
}: {
  messaging: Pick<Api['messaging'], 'searchConversations'>
  /** Returns the operator's name, which identifies their assignments. */
  me: () => string
  now?: () => number
}) {
  const query = signal(start)
  /** True if the query contains a letter or a digit. */
  const isActive = computed(() => /[\p{L}\p{N}]/u.test(query.value.text))
  const results = signal<readonly SearchResult[]>([])
  const failure = signal<Failure | undefined>(undefined)
  const loading = signal(false)
  const next = signal<string | undefined>(undefined)
  let timer: ReturnType<typeof setTimeout> | undefined
  let abort = new AbortController()

  async function load(pageToken: string | undefined) {
    const { text, status, assignee, days } = query.peek()
    abort.abort()
    abort = new AbortController()
    const { signal: current } = abort
    const known = pageToken === undefined ? [] : results.peek()
    loading.value = true
    try {
      for (let pages = 0; pages < maxEmptyPages; pages += 1) {
        const page = await messaging.searchConversations(
          {
            query: text.trimStart(),
            status: statuses[status],
            assignee:
              assignee === 'anyone'
                ? { case: undefined }
                : assignee === 'me'
                  ? { case: 'agentName', value: me() }
                  : { case: 'unassigned', value: true },
            from: days > 0 ? timestampFromMs(now() - days * 86_400_000) : undefined,
            pageToken,
          },
          { signal: current },
        )
        if (current.aborted) return
        results.value = [...known, ...page.results]
        next.value = pageToken = page.nextPageToken
        if (page.results.length > 0 || pageToken === undefined) break
      }
      failure.value = undefined
    } catch (error) {
      if (current.aborted) return
      failure.value = describeFailure(error)
    }
    loading.value = false
  }

  function stop() {
    clearTimeout(timer)
    abort.abort()
    loading.value = false
  }

  return {
    query,
    results,
    failure,
    loading,
    isActive,
    hasMore: computed(() => next.value !== undefined),
    /** Changes the query and searches again after a pause. */
    change(change: Partial<SearchQuery>) {
      query.value = { ...query.value, ...change }
      stop()
      failure.value = undefined
      next.value = undefined
      if (!isActive.peek()) {
        results.value = []
        return
      }
      loading.value = true
      timer = setTimeout(() => void load(undefined), pauseMs)
    },
    more: () => load(next.peek()),
    retry: () => load(undefined),
    /** Ends the search. The next search begins without filters. */
    clear() {
      stop()
      query.value = start
      results.value = []
      next.value = undefined
      failure.value = undefined
    },
  }
}
