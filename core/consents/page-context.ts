import { repairLine } from '../repairs.ts'
import type { PageContext } from '../sessions/model.ts'

const maxUrlLength = 2048
const maxTitleCodePoints = 256
const maxPixels = 100_000
/** Fields in the order in which they are dropped when a page context is too large. */
const droppedFirst = ['referrer', 'title', 'url'] as const

/**
 * Keeps the valid parts of a page context, with at most `maxBytes` of JSON. Removes query, fragment, user
 * info and the referrer's path. Never throws. Undefined if no part is valid.
 */
export function repairPageContext(sent: PageContext, maxBytes: number): PageContext | undefined {
  const url = pageUrl(sent.url)
  const title = repairLine(sent.title ?? '', maxTitleCodePoints)
  const referrer = webUrl(sent.referrer)?.origin
  const { viewport } = sent
  const kept: PageContext = {
    ...(url !== undefined && { url }),
    ...(title !== '' && { title }),
    ...(referrer !== undefined && referrer.length <= maxUrlLength && { referrer }),
    ...(viewport && isPixels(viewport.width) && isPixels(viewport.height) && { viewport }),
  }
  for (const name of droppedFirst) if (Buffer.byteLength(JSON.stringify(kept)) > maxBytes) delete kept[name]
  return Object.keys(kept).length > 0 ? kept : undefined
}

function pageUrl(sent: string | undefined) {
  const page = webUrl(sent)
  if (!page) return undefined
  page.username = ''
  page.password = ''
  page.search = ''
  page.hash = ''
  // URLs are not shortened within the host, because the result would be another host.
  return page.origin.length < maxUrlLength ? cutPath(page.href) : undefined
}

function webUrl(sent = '') {
  const url = URL.parse(repairLine(sent, sent.length))
  return url?.protocol === 'https:' || url?.protocol === 'http:' ? url : undefined
}

/** Shortens the path of a URL, but never within the percent-encoding of one character. */
function cutPath(href: string) {
  if (href.length <= maxUrlLength) return href
  let end = maxUrlLength
  const lastEscape = href.lastIndexOf('%', end - 1)
  if (lastEscape > end - 3) end = lastEscape
  while (/^%[89ab]/i.test(href.slice(end, end + 3)) && href[end - 3] === '%') end -= 3
  return href.slice(0, end)
}

function isPixels(value: number) {
  return Number.isInteger(value) && value >= 0 && value <= maxPixels
}
