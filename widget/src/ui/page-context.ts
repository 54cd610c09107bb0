import { minimized } from '../page-context.ts'
import type { PageContext } from '../types.ts'

/** What the service may know of the page that the browser shows. */
export function pageContextOf(): PageContext | undefined {
  const viewport = { width: Math.round(innerWidth), height: Math.round(innerHeight) }
  return minimized({ url: location.href, title: document.title, referrer: document.referrer, viewport })
}
