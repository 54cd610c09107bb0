import { isOriginAllowed } from '../visitors/origins.ts'

/**
 * The broken rule of a navigation URL; undefined if it is http(s) on one of the origins (contract,
 * section 3).
 */
export function navigationIssue(url: string, origins: string[]): string | undefined {
  if (url.length > 2048) return 'maxLength'
  const target = URL.parse(url)
  // URL parsers drop or replace these characters, so the checked URL could differ from the one that
  // the page opens.
  if (!target || /[\s\p{Cc}\\]/u.test(url) || target.username !== '' || target.password !== '') return 'format'
  const isWeb = target.protocol === 'https:' || target.protocol === 'http:'
  return isWeb && isOriginAllowed(target.origin, origins) ? undefined : 'origin'
}
