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
 * Loads a value, and reloads it when `dependencies` change. A reload keeps the old value until the new
 * one arrives. An older response never replaces a newer one. With `everyMs`, polls while the page is visible.
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
  useEffect(() => {
    if (everyMs === undefined) return
    const timer = setInterval(() => document.visibilityState === 'visible' && void reload(), everyMs)
    return () => clearInterval(timer)
  }, [everyMs, ...dependencies])

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
