import type { PageContext } from '../types.ts'

/** The page as the browser shows it. The client removes what the service must not get. */
export function pageContextOf(): PageContext {
  const viewport = { width: Math.round(innerWidth), height: Math.round(innerHeight) }
  return { url: location.href, title: document.title, referrer: document.referrer, viewport }
}
