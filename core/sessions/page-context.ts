import type { FieldIssue } from '../errors.ts'
import { field, integer, text, url } from '../rules.ts'

/** Where the visitor is, minimised: no query, no fragment, the referrer cut to its origin (contract, section 3). */
export interface PageContext {
  url: string
  title?: string
  referrer?: string
  viewport?: { width: number; height: number }
}

const maxPixels = 100_000

/** The broken rules of a page context as it was reported. */
export function pageContextIssues(
  path: string,
  context: PageContext | undefined,
  maxBytes: number,
): (FieldIssue | undefined)[] {
  if (!context) return []
  return [
    field(`${path}/url`, context.url, url('http', 'https')),
    field(`${path}/title`, context.title, text(0, 256)),
    field(`${path}/referrer`, context.referrer, (value) => (value === '' ? undefined : url('http', 'https')(value))),
    field(`${path}/viewport/width`, context.viewport?.width, integer(0, maxPixels)),
    field(`${path}/viewport/height`, context.viewport?.height, integer(0, maxPixels)),
    field(path, context, (value) => (Buffer.byteLength(JSON.stringify(value)) > maxBytes ? 'maxBytes' : undefined)),
  ]
}

/** Keeps what an operator needs, and nothing that a page puts into a query, a fragment or a referrer's path. */
export function minimisePageContext(context: PageContext): PageContext {
  const page = new URL(context.url)
  page.search = ''
  page.hash = ''
  return {
    url: page.href,
    ...(context.title === undefined ? {} : { title: context.title }),
    ...(context.referrer ? { referrer: new URL(context.referrer).origin } : {}),
    ...(context.viewport === undefined ? {} : { viewport: context.viewport }),
  }
}
