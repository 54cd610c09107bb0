import type { PageContext } from '../vocabulary/types.ts'

/**
 * Maximum length of a title in UTF-16 code units. The service accepts 256 code points, each of
 * which has up to two code units.
 */
const longestTitle = 512

/** Returns the page without the URL's query and fragment. Reduces the referrer to its origin. */
export function minimized(page: PageContext | undefined): PageContext | undefined {
  if (!page || !URL.canParse(page.url)) return undefined
  const { protocol, origin, pathname } = new URL(page.url)
  if (protocol !== 'https:' && protocol !== 'http:') return undefined
  const referrer = page.referrer && URL.canParse(page.referrer) ? new URL(page.referrer).origin : 'null'
  return {
    url: (origin + pathname).slice(0, 2_048),
    ...(page.title && { title: page.title.slice(0, longestTitle) }),
    ...(referrer !== 'null' && { referrer }),
    ...(page.viewport && { viewport: page.viewport }),
  }
}
