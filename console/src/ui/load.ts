import { useEffect, useRef, useState } from 'preact/hooks'
import { describeFailure, type Failure } from '../failures.ts'

export interface Loaded<T> {
  value: T | undefined
  loading: boolean
  failure: Failure | undefined
  reload(): Promise<void>
  set(value: T): void
}

/**
 * Loads a value, and reloads it when `dependencies` change. The old value stays until the new one
 * arrives. A response to an older request never replaces that of a newer one. With `everyMs`, reloads
 * at this interval while the page is visible.
 */
export function useLoad<T>(load: () => Promise<T>, dependencies: unknown[], everyMs?: number): Loaded<T> {
  const [state, setState] = useState<{ value?: T; loading: boolean; failure?: Failure }>({ loading: true })
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
    value: state.value,
    loading: state.loading,
    failure: state.failure,
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
