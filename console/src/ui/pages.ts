import { useEffect, useRef, useState } from 'preact/hooks'
import { describeFailure, type Failure } from '../failures.ts'

export interface Pages<T> {
  items: T[]
  /** There is nothing to show yet. */
  first: boolean
  loading: boolean
  failure: Failure | undefined
  hasMore: boolean
  more(): Promise<void>
  /** Looks at the first page again and keeps those after it. */
  reload(): Promise<void>
}

/** A list that comes in pages. What is known stays while it is looked at again, by `keyOf`. */
export function usePages<T>(
  load: (pageToken: string) => Promise<{ items: T[]; nextPageToken: string }>,
  keyOf: (item: T) => string,
  about: unknown[],
): Pages<T> {
  const [state, setState] = useState<{ items: T[]; next: string; loading: boolean; first: boolean; failure?: Failure }>(
    {
      items: [],
      next: '',
      loading: true,
      first: true,
    },
  )
  const round = useRef(0)

  async function fetchPage(pageToken: string, keep: (known: T[], page: T[], isAll: boolean) => T[]) {
    const mine = round.current
    setState((before) => ({ ...before, loading: true }))
    try {
      const { items, nextPageToken } = await load(pageToken)
      if (mine !== round.current) return
      setState((before) => ({
        items: keep(before.items, items, nextPageToken === ''),
        // Looking at the first page again does not lose the place further down.
        next:
          pageToken === '' && nextPageToken !== '' && before.items.length > items.length ? before.next : nextPageToken,
        loading: false,
        first: false,
      }))
    } catch (error) {
      if (mine !== round.current) return
      setState((before) => ({ ...before, loading: false, first: false, failure: describeFailure(error) }))
    }
  }

  const without = (items: T[], others: T[]) => {
    const keys = new Set(others.map(keyOf))
    return items.filter((item) => !keys.has(keyOf(item)))
  }
  const reload = () =>
    fetchPage('', (known, page, isAll) => {
      if (isAll) return page
      const end = known.findIndex((item) => keyOf(item) === keyOf(page.at(-1)!))
      return [...page, ...without(known.slice(end + 1), page)]
    })

  useEffect(() => {
    round.current += 1
    setState({ items: [], next: '', loading: true, first: true })
    void fetchPage('', (_, page) => page)
    return () => {
      round.current += 1
    }
  }, about)

  return {
    items: state.items,
    first: state.first,
    loading: state.loading,
    failure: state.failure,
    hasMore: state.next !== '',
    more: () => fetchPage(state.next, (known, page) => [...known, ...without(page, known)]),
    reload,
  }
}
