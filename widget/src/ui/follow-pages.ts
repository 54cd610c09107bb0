/**
 * Tells when a single-page application goes to another page, without touching the page's history object: by the Navigation
 * API where the browser has it, else by `popstate` alone, and the application says the rest with `updatePageContext`.
 */
export function followPages(onPage: () => void): () => void {
  const controller = new AbortController()
  const { signal } = controller
  const { navigation } = window as { navigation?: EventTarget }
  navigation?.addEventListener('currententrychange', onPage, { signal })
  window.addEventListener('popstate', onPage, { signal })
  return () => controller.abort()
}
