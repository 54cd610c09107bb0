const maxLength = 2048

/**
 * Accepts http and https without user info, fragment, white space or port 0 (contract, section 5), and
 * returns undefined for other texts. Unusual notations of the host are normalised, so that the resolver
 * can check it.
 */
export function parseDestinationUrl(text: string): URL | undefined {
  // The parser changes these, so the stored URL and the called URL would differ.
  if (text.length > maxLength || /[\s\p{Cc}\\#]/u.test(text)) return undefined
  const url = URL.parse(text)
  if (!url || !['http:', 'https:'].includes(url.protocol)) return undefined
  if (url.username !== '' || url.password !== '' || url.port === '0') return undefined
  return url
}
