import { computed, effect, type ReadonlySignal, signal, untracked } from '@preact/signals'
import { ConversationStatus, type SearchResult } from '#proto/messaging/v1/messaging_pb.js'
import type { Api } from '../api.ts'
import { describeFailure, type Failure } from '../failures.ts'
import type { InboxFilter } from '../router.ts'
import { hoursAgo } from '../time.ts'
import { assigneeIn } from './inbox-filter.ts'

/** Time after the last change of the text until the search begins. */
const pauseMs = 200
/** Maximum number of pages without a result that one step loads. Frequent words may rarely occur together. */
const maxEmptyPages = 20
const statuses = {
  open: ConversationStatus.OPEN,
  closed: ConversationStatus.CLOSED,
  all: ConversationStatus.UNSPECIFIED,
}

export interface SearchDeps extends Pick<Api, 'messaging'> {
  /** The operator's id, which identifies their assignments. */
  me: string
  /** The filter of the address. */
  filter: ReadonlySignal<InboxFilter>
  setFilter(change: InboxFilter): void
}

export function createSearch({ messaging, me, filter, setFilter }: SearchDeps) {
  /** In the address, `q` is the searched text, and `days` the age of the oldest text. */
  const query = computed(() => {
    const { q = '', status = 'all', assignee = 'anyone', days = '0' } = filter.value
    return { text: q, status, assignee, days: Number(days) || 0 }
  })
  const queryText = computed(() => JSON.stringify(query.value))
  /** The text of the field. The address gets it after a pause, because browsers limit changes of it. */
  const typed = signal(query.peek().text)
  /** True if the text contains a letter or a digit. */
  const isActive = computed(() => /[\p{L}\p{N}]/u.test(typed.value))
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
            status: statuses[status as keyof typeof statuses],
            assignee: assigneeIn(me, assignee === 'me', assignee !== 'anyone'),
            from: days > 0 ? hoursAgo(24 * days) : undefined,
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

  function drop() {
    clearTimeout(timer)
    abort.abort()
    results.value = []
    next.value = undefined
    failure.value = undefined
    loading.value = false
  }

  /** Searches for the query of the address. The results of the earlier one stay until then. */
  function begin() {
    clearTimeout(timer)
    failure.value = undefined
    next.value = undefined
    typed.value = query.peek().text
    if (isActive.peek()) void load(undefined)
    else drop()
  }
  const stop = effect(() => {
    if (queryText.value) untracked(begin)
  })

  return {
    query,
    typed,
    /** Changes the text, and searches after a pause. */
    type(text: string) {
      typed.value = text
      clearTimeout(timer)
      loading.value = isActive.peek()
      timer = setTimeout(() => {
        if (text === query.peek().text) begin()
        else setFilter({ q: text })
      }, pauseMs)
    },
    results,
    failure,
    loading,
    isActive,
    hasMore: computed(() => next.value !== undefined),
    more: () => load(next.peek()),
    retry: () => load(undefined),
    /** Ends the search. The next search begins without filters. */
    clear() {
      typed.value = ''
      drop()
      setFilter({ q: undefined, status: undefined, assignee: undefined, days: undefined })
    },
    remove(conversationIds: readonly string[]) {
      results.value = results.value.filter(
        ({ conversation }) => !conversationIds.includes(conversation?.conversationId ?? ''),
      )
    },
    stop() {
      stop()
      drop()
    },
  }
}
