/** Longest locale tag that is kept. */
const maxLocaleLength = 35

/** One line of advisory text: control characters and lone surrogates removed, cut to at most `maxCodePoints`. */
export function repairLine(sent: string, maxCodePoints: number): string {
  const clean = sent.replace(/[\p{Cc}\p{Cs}]/gu, '')
  return clean.length <= maxCodePoints ? clean : [...clean].slice(0, maxCodePoints).join('')
}

/** The tag in its canonical form: `de_DE` becomes `de-DE`. Undefined for what is no locale. */
export function repairLocale(sent: string): string | undefined {
  // Some systems add an encoding or a variant: `en_US.UTF-8`, `en-US@posix`.
  const [tag = ''] = repairLine(sent, sent.length).trim().replaceAll('_', '-').split(/[.@]/)
  try {
    const [kept = ''] = Intl.getCanonicalLocales(tag)
    return kept.length <= maxLocaleLength ? kept : undefined
  } catch {
    return undefined
  }
}

/** CRLF and CR become LF, before a message's body is checked, compared or stored. */
export function useLineFeeds(body: string): string {
  return body.replace(/\r\n?/g, '\n')
}
