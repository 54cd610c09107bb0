import type { PageContext } from '../../vocabulary/types.ts'

export function currentPage(): PageContext {
  const viewport = { width: Math.round(innerWidth), height: Math.round(innerHeight) }
  return { url: location.href, title: document.title, referrer: document.referrer, viewport }
}

/**
 * Calls `onPage` when a single-page application changes the URL. In browsers without the Navigation
 * API, detects only `popstate`; the application must call `updatePageContext` for other changes.
 * Returns a function that stops the calls.
 */
export function followPages(onPage: () => void): () => void {
  const controller = new AbortController()
  const { signal } = controller
  const { navigation } = window as { navigation?: EventTarget }
  navigation?.addEventListener('currententrychange', onPage, { signal })
  window.addEventListener('popstate', onPage, { signal })
  return () => controller.abort()
}
