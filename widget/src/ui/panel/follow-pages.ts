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
  const { navigation } = window as { navigation?: EventTarget }
  navigation?.addEventListener('currententrychange', onPage, controller)
  window.addEventListener('popstate', onPage, controller)
  return () => controller.abort()
}

/**
 * Sets `--viewport-height` and `--viewport-top` to the height and top of the visible part of the
 * page. The message field then stays above a phone's keyboard. Returns a function that stops the
 * updates.
 */
export function followVisualViewport(target: HTMLElement): () => void {
  const viewport = window.visualViewport
  if (!viewport) return () => {}
  const controller = new AbortController()
  const update = () => {
    target.style.setProperty('--viewport-height', `${viewport.height}px`)
    target.style.setProperty('--viewport-top', `${viewport.offsetTop}px`)
    // Lengths of the viewport are not scaled by `zoom` of the page, but multiplied by it.
    target.style.setProperty('--unzoom', String(1 / (target.currentCSSZoom || 1)))
  }
  const resize = () => {
    update()
    // WebKit checks the media queries of a shadow tree again only when its style sheets are set.
    const root = target.getRootNode() as ShadowRoot
    root.adoptedStyleSheets = [...root.adoptedStyleSheets]
  }
  viewport.addEventListener('resize', resize, controller)
  viewport.addEventListener('scroll', update, controller)
  update()
  return () => controller.abort()
}
