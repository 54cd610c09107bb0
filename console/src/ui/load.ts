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
 * arrives. A response to an older request never replaces a newer value. With `everyMs`, reloads at
 * this interval while the page is visible.
 */
export function useLoad<T>(load: () => Promise<T>, dependencies: unknown[], everyMs?: number): Loaded<T> {
  const [state, setState] = useState<{ value?: T; loading: boolean; failure?: Failure }>({ loading: true })
  const latest = useRef(0)
  const current = useRef(load)
  current.current = load

  async function reload() {
    latest.current += 1
    const mine = latest.current
    setState((before) => ({ ...before, loading: true }))
    try {
      const value = await current.current()
      if (mine === latest.current) setState({ value, loading: false })
    } catch (error) {
      if (mine === latest.current)
        setState((before) => ({ ...before, loading: false, failure: describeFailure(error) }))
    }
  }

  useEffect(() => {
    setState({ loading: true })
    void reload()
    return () => {
      latest.current += 1
    }
  }, dependencies)
  usePolling(reload, everyMs)

  return {
    value: state.value,
    loading: state.loading,
    failure: state.failure,
    reload,
    set(value) {
      latest.current += 1
      setState({ value, loading: false })
    },
  }
}

/**
 * Calls `refresh` every `everyMs` while the page is visible. Does nothing if `everyMs` is
 * undefined.
 */
export function usePolling(refresh: () => Promise<unknown>, everyMs: number | undefined) {
  const current = useRef(refresh)
  current.current = refresh
  useEffect(() => {
    if (everyMs === undefined) return
    const timer = setInterval(() => document.visibilityState === 'visible' && void current.current(), everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
}
