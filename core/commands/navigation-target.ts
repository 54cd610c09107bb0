import { isOriginAllowed } from '../visitors/origins.ts'

/**
 * What is wrong with a URL that a page is to be sent to; undefined when it is http(s) on one of the origins: nowhere that
 * the site does not speak for (contract, section 3).
 */
export function navigationIssue(url: string, origins: string[]): string | undefined {
  if (url.length > 2048) return 'maxLength'
  const target = URL.parse(url)
  // Parsers drop or turn these, so that what is checked might not be what a page makes of it.
  if (!target || /[\s\p{Cc}\\]/u.test(url) || target.username !== '' || target.password !== '') return 'format'
  const isWeb = target.protocol === 'https:' || target.protocol === 'http:'
  return isWeb && isOriginAllowed(target.origin, origins) ? undefined : 'origin'
}
