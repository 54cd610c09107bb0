import type { PageContext } from '../types.ts'

/** What the service may know of the page: no query, no fragment, and of the referrer only its origin. */
export function pageContextOf(): PageContext | undefined {
  const { protocol, origin, pathname } = location
  if (protocol !== 'https:' && protocol !== 'http:') return undefined
  const url = (origin + pathname).slice(0, 2_048)
  const title = document.title.slice(0, 256)
  const referrer = URL.canParse(document.referrer) ? new URL(document.referrer).origin : undefined
  const viewport = { width: Math.round(innerWidth), height: Math.round(innerHeight) }
  return { url, ...(title && { title }), ...(referrer && referrer !== 'null' && { referrer }), viewport }
}
