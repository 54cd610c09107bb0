const maxLength = 2048

/**
 * http or https (contract, section 5), without user info, fragment, white space or port 0; undefined for
 * other texts. The resolver checks the host, whose unusual notations are normalised.
 */
export function parseDestinationUrl(text: string): URL | undefined {
  // The parser changes these, so the stored URL and the called URL would differ.
  if (text.length > maxLength || /[\s\p{Cc}\\#]/u.test(text)) return undefined
  const url = URL.parse(text)
  if (!url || !['http:', 'https:'].includes(url.protocol)) return undefined
  if (url.username !== '' || url.password !== '' || url.port === '0') return undefined
  return url
}
