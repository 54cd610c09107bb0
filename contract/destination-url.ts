const maxLength = 2048

/**
 * Parses a destination (contract, section 5): http or https, at most 2,048 characters, without user
 * info, fragment, white space or port 0. Returns undefined for other texts. The host is not checked
 * here. In the returned URL, unusual notations of addresses are normalised, so that the resolver
 * can check them.
 */
export function parseDestinationUrl(text: string): URL | undefined {
  // The URL parser removes or replaces these characters, so the stored URL and the called URL would
  // differ.
  if (text.length > maxLength || /[\s\p{Cc}\\#]/u.test(text)) return undefined
  const url = URL.parse(text)
  if (!url || !['http:', 'https:'].includes(url.protocol)) return undefined
  if (url.username !== '' || url.password !== '' || url.port === '0') return undefined
  return url
}
