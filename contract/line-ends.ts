/** CRLF, CR and the soft line ends that presentations and word processors write (contract, rule 49). */
const lineEnds = /\r\n?|[\v\f\u0085\u2028\u2029]/g

/** Converts every line end to LF. Must run before a text is checked, compared or stored. */
export function useLineFeeds(text: string): string {
  return text.replace(lineEnds, '\n')
}

/** Converts every line end to a space, for a field with one line. */
export function useOneLine(text: string): string {
  return useLineFeeds(text).replaceAll('\n', ' ')
}

/** Converts the line ends of every text in a request. Changes the request. */
export function useLineFeedsIn(request: object) {
  // Not recursive, because JSON can be nested more deeply than the stack is.
  const left = [request as Record<string, unknown>]
  for (let part = left.pop(); part; part = left.pop()) {
    if (ArrayBuffer.isView(part)) continue
    for (const [name, value] of Object.entries(part)) {
      if (typeof value === 'string') part[name] = useLineFeeds(value)
      else if (typeof value === 'object' && value !== null) left.push(value as Record<string, unknown>)
    }
  }
}
