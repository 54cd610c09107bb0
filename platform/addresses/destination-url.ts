const maxLength = 2048

/**
 * Parses a destination (contract, section 5): http or https, at most 2,048 characters, without user
 * info, fragment, white space and port 0. Returns undefined for everything else. Does not check the
 * host: `hostname` has unusual notations of addresses normalised, for the resolver to check.
 */
export function parseDestinationUrl(text: string): URL | undefined {
  // The parser removes or replaces these characters, so the stored and the called URL would differ.
  if (text.length > maxLength || /[\s\p{Cc}\\#]/u.test(text)) return undefined
  const url = URL.parse(text)
  if (!url || !['http:', 'https:'].includes(url.protocol)) return undefined
  if (url.username !== '' || url.password !== '' || url.port === '0') return undefined
  return url
}
