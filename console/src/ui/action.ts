import { useRef, useState } from 'preact/hooks'
import { describeFailure, type Failure } from '../failures.ts'

/**
 * Returns `run` and its state. `run` runs one call at a time and ignores clicks while a call is
 * running.
 */
export function useAction() {
  const [busy, setBusy] = useState(false)
  const [failure, setFailure] = useState<Failure>()
  const running = useRef(false)
  async function run(call: () => Promise<unknown>): Promise<boolean> {
    if (running.current) return false
    running.current = true
    setBusy(true)
    setFailure(undefined)
    try {
      await call()
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
