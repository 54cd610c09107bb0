const maxLength = 2048

/**
 * A destination as its registration and each attempt read it (contract, section 5): http or https, at most 2,048 characters,
 * without user info, fragment, white space and port 0. Undefined for everything else. What its host is, is not judged here:
 * odd spellings of addresses are in `hostname` in their usual form, ready for the resolver.
 */
export function parseDestinationUrl(text: string): URL | undefined {
  // The parser drops or turns these around silently; what is stored and what is called would differ.
  if (text.length > maxLength || /[\s\p{Cc}\\#]/u.test(text)) return undefined
  const url = URL.parse(text)
  if (!url || !['http:', 'https:'].includes(url.protocol)) return undefined
  if (url.username !== '' || url.password !== '' || url.port === '0') return undefined
  return url
}
