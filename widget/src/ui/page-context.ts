import { minimized } from '../page-context.ts'
import type { PageContext } from '../types.ts'

/** The page context of the current page. */
export function pageContextOf(): PageContext | undefined {
  const viewport = { width: Math.round(innerWidth), height: Math.round(innerHeight) }
  return minimized({ url: location.href, title: document.title, referrer: document.referrer, viewport })
}
