import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useConsole, useShortcuts } from '../console-context.ts'
import { describeFailure, type Failure } from '../failures.ts'
import { Button, FailureNotice, Loading } from './page.tsx'

export interface Loaded<T> {
  value?: T
  loading: boolean
  failure?: Failure
  reload(): Promise<void>
  set(value: T): void
}

/**
 * Loads a value, and reloads it when `dependencies` change. The old value stays until the new one
 * arrives. A response to an older request never replaces that of a newer one. With `everyMs`, reloads
 * at this interval while the page is visible.
 */
export function useLoad<T>(load: () => Promise<T>, dependencies: unknown[], everyMs?: number): Loaded<T> {
  const [state, setState] = useState<Pick<Loaded<T>, 'value' | 'loading' | 'failure'>>({ loading: true })
  /** Number of the latest request, and of the latest one whose response is shown. */
  const numbers = useRef({ asked: 0, shown: 0 }).current
  const current = useRef(load)
  current.current = load

  async function reload() {
    numbers.asked += 1
    const mine = numbers.asked
    setState((before) => ({ ...before, loading: true }))
    const show = (change: { value: T; failure?: undefined } | { failure: Failure }) => {
      if (mine <= numbers.shown) return
      numbers.shown = mine
      setState((before) => ({ ...before, ...change, loading: mine !== numbers.asked }))
    }
    await current.current().then(
      (value) => show({ value, failure: undefined }),
      (error) => show({ failure: describeFailure(error) }),
    )
  }

  function dropRunning() {
    numbers.shown = numbers.asked
  }

  useEffect(() => {
    setState({ loading: true })
    void reload()
    return dropRunning
  }, dependencies)
  usePolling(reload, everyMs)

  return {
    ...state,
    reload,
    set(value) {
      dropRunning()
      setState({ value, loading: false })
    },
  }
}

/**
 * Calls `refresh` every `everyMs` while the page is visible, unless the last call still runs. Does
 * nothing if `everyMs` is undefined.
 */
export function usePolling(refresh: () => Promise<unknown>, everyMs: number | undefined) {
  const current = useRef(refresh)
  current.current = refresh
  useEffect(() => {
    if (everyMs === undefined) return
    let isRunning = false
    const timer = setInterval(() => {
      if (isRunning || document.visibilityState !== 'visible') return
      isRunning = true
      void current.current().finally(() => {
        isRunning = false
      })
    }, everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
}

/** Loads a list page by page. A reload reads all pages again. `name` is the field of an answer that has the items. */
export function usePages<Name extends string, Answer extends { nextPageToken: string } & Record<Name, unknown[]>>(
  load: (pageToken: string) => Promise<Answer>,
  name: Name,
  dependencies: unknown[],
) {
  const pages = useRef(1)
  useEffect(() => {
    pages.current = 1
  }, dependencies)
  const { value, ...loaded } = useLoad(async () => {
    const items: Answer[Name][number][] = []
    let next = ''
    for (let page = 0; page === 0 || (page < pages.current && next !== ''); page += 1) {
      const answer = await load(next)
      items.push(...answer[name])
      next = answer.nextPageToken
    }
    return { items, hasMore: next !== '' }
  }, dependencies)
  return {
    ...loaded,
    items: value?.items ?? [],
    hasMore: value?.hasMore === true,
    /** True until the first page has loaded or failed to load. */
    first: value === undefined && loaded.loading,
    more() {
      pages.current += 1
      return loaded.reload()
    },
  }
}

/** Lets the keys `j` and `k` move the focus between the rows that match the selector. */
export function useRowKeys(selector: string) {
  function move(step: number) {
    const all = [...document.querySelectorAll<HTMLElement>(selector)]
    const at = all.findIndex((row) => row.contains(document.activeElement))
    const from = at >= 0 ? at : all.findIndex((row) => row.hasAttribute('aria-current'))
    const target = from < 0 ? all[0] : all[Math.max(0, Math.min(all.length - 1, from + step))]
    target?.focus()
  }
  useShortcuts({ j: () => move(1), k: () => move(-1) })
}

interface LoadedListProps<T> extends Omit<WhenLoadedProps<T[]>, 'children'> {
  empty?: string
  kind?: string
  children: (item: T) => ComponentChildren
}

export function LoadedList<T>({ empty, kind = 'table', children, ...loading }: LoadedListProps<T>) {
  return (
    <WhenLoaded {...loading}>
      {(items) =>
        items.length > 0 ? <ul class={kind}>{items.map(children)}</ul> : empty && <p class="hint">{empty}</p>
      }
    </WhenLoaded>
  )
}

const pollMs = 20_000

interface PagedListProps<T> {
  list: Omit<ReturnType<typeof usePages>, 'items'> & { items: T[] }
  /** Plural name of the listed items. */
  what: string
  empty: ComponentChildren
  children: (item: T) => ComponentChildren
  everyMs?: number
}

/** Shows the rows of a paginated list, which it reloads, with a button that loads the next page. */
export function PagedList<T>({ list, what, empty, children, everyMs = pollMs }: PagedListProps<T>) {
  const { items, first, loading, failure, hasMore } = list
  useRowKeys('.table .table-row')
  usePolling(list.reload, everyMs)
  return (
    <>
      <FailureNotice failure={failure} retry={list.reload} />
      {first && <Loading label={`Loading ${what}`} />}
      {!first && !failure && items.length === 0 && empty}
      {items.length > 0 && <ul class="table">{items.map(children)}</ul>}
      {hasMore && (
        <Button kind="ghost more" disabled={loading} onClick={list.more}>
          {`Load earlier ${what}`}
        </Button>
      )}
    </>
  )
}

/** `run` runs one call at a time and ignores others meanwhile. Screen readers say `done` when it has succeeded. */
export function useAction() {
  const { announcer } = useConsole()
  const [busy, setBusy] = useState(false)
  const [failure, setFailure] = useState<Failure>()
  const running = useRef(false)
  async function run(call: () => Promise<unknown>, done?: string) {
    if (running.current) return false
    running.current = true
    setBusy(true)
    setFailure(undefined)
    try {
      await call()
      if (done) announcer.say(done)
      return true
    } catch (error) {
      setFailure(describeFailure(error))
      return false
    } finally {
      running.current = false
      setBusy(false)
    }
  }
  return { busy, failure, run, clear: () => setFailure(undefined) }
}

interface WhenLoadedProps<T> {
  loaded: Omit<Loaded<T | undefined>, 'set'>
  what: string
  children: (value: T) => ComponentChildren
}

export function WhenLoaded<T>({ loaded, what, children }: WhenLoadedProps<T>) {
  const { value, loading, failure, reload } = loaded
  return (
    <>
      <FailureNotice failure={failure} retry={reload} />
      {value === undefined && loading && <Loading label={`Loading ${what}`} />}
      {value !== undefined && children(value)}
    </>
  )
}

/** Data that a scope shows, in the words of the console. */
const scopedData = {
  'sessions:read': 'names, pages and sessions of visitors',
  'leads:read': 'leads and contact details',
  'commands:read': 'requests to the visitor’s page',
}

/** Says which data the operator's session does not show. Shows nothing if it shows all. */
export function HiddenData({ scopes = Object.keys(scopedData) as Scope[] }: { scopes?: Scope[] }) {
  const { session } = useConsole()
  const hidden = scopes.filter((scope) => !session.scopes.includes(scope)).map((scope) => scopedData[scope])
  if (hidden.length === 0) return null
  return <p class="hint">Your session does not have permission to show {hidden.join(', ')}.</p>
}

type Scope = keyof typeof scopedData
