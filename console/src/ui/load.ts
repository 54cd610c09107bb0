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
 * Loads what a view shows, again whenever `about` changes. What was there stays until the new is, an older answer never
 * replaces a newer one, and with `everyMs` it is looked at again while somebody looks.
 */
export function useLoad<T>(load: () => Promise<T>, about: unknown[], everyMs?: number): Loaded<T> {
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
  }, about)
  useEffect(() => {
    if (everyMs === undefined) return
    const timer = setInterval(() => document.visibilityState === 'visible' && void reload(), everyMs)
    return () => clearInterval(timer)
  }, [everyMs, ...about])

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
