import { WidgetError } from './errors.ts'

/**
 * Returns a function that loads a code chunk on its first call and then returns the same promise.
 * If loading fails, the call rejects with a retryable error with this `code`, and the next call
 * tries again.
 */
export function loadOnce<Part>(
  load: () => Promise<Part>,
  code: string,
  onFailure: (failure: WidgetError) => void = () => {},
): () => Promise<Part> {
  let loading: Promise<Part> | undefined
  return () => {
    loading ??= load().catch(() => {
      loading = undefined
      const failure = new WidgetError(code, { retryable: true })
      onFailure(failure)
      throw failure
    })
    return loading
  }
}
