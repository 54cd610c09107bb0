import { WidgetError } from './errors.ts'

/**
 * Loads a part of the package at the first call. If loading fails, the call rejects with a retryable error of this code, and
 * the next call loads again.
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
