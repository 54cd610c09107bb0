import { useEffect, useRef, useState } from 'preact/hooks'
import { describeFailure, type Failure } from '../failures.ts'

/**
 * Loads a list page by page. A reload also keeps the items of later pages. `name` is the field of an
 * answer that has the items. `keyOf` returns the key of an item.
 */
export function usePages<Name extends string, Answer extends { nextPageToken: string } & Record<Name, unknown[]>>(
  load: (pageToken: string) => Promise<Answer>,
  name: Name,
  keyOf: (item: Answer[Name][number]) => string,
  dependencies: unknown[],
) {
  type T = Answer[Name][number]
  const start = { items: [] as T[], next: '', loading: true, first: true }
  const [state, setState] = useState<typeof start & { failure?: Failure }>(start)
  const generation = useRef(0)

  async function fetchPage(pageToken: string, keep: (known: T[], page: T[], isAll: boolean) => T[]) {
    const mine = generation.current
    setState((before) => ({ ...before, loading: true }))
    try {
      const { [name]: items, nextPageToken } = await load(pageToken)
      if (mine !== generation.current) return
      setState((before) => ({
        items: keep(before.items, items, nextPageToken === ''),
        // After a reload of the first page, the next page is still the one after the last loaded
        // page.
        next:
          pageToken === '' && nextPageToken !== '' && before.items.length > items.length ? before.next : nextPageToken,
        loading: false,
        first: false,
      }))
    } catch (error) {
      if (mine !== generation.current) return
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
    generation.current += 1
    setState(start)
    void fetchPage('', (_, page) => page)
    return () => {
      generation.current += 1
    }
  }, dependencies)

  return {
    items: state.items,
    /** True until the first page has loaded or failed to load. */
    first: state.first,
    loading: state.loading,
    failure: state.failure,
    hasMore: state.next !== '',
    more: () => fetchPage(state.next, (known, page) => [...known, ...without(page, known)]),
    /** Reloads the first page and keeps the later ones. */
    reload,
  }
}
