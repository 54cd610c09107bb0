import type { PageContext } from './types.ts'

/** In UTF-16 code units: the service keeps 256 code points, which have up to two each. */
const longestTitle = 512

/** No query and no fragment ever leaves the browser; of the referrer only its origin does. */
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
