const maxLocaleLength = 35

/** Shortens the text. Removes control characters and lone surrogates. */
export function repairLine(sent: string, maxCodePoints: number): string {
  const clean = sent.replace(/[\p{Cc}\p{Cs}]/gu, '')
  return clean.length <= maxCodePoints ? clean : [...clean].slice(0, maxCodePoints).join('')
}

/** Returns the canonical tag, for example `de-DE` for `de_DE`; undefined if the text is no locale. */
export function repairLocale(sent: string): string | undefined {
  // Some systems add an encoding or a variant, as in `en_US.UTF-8` or `en-US@posix`.
  const [tag = ''] = repairLine(sent, sent.length).trim().replaceAll('_', '-').split(/[.@]/)
  // Most requests have no locale, and an error is slow.
  if (tag === '') return undefined
  try {
    const [kept = ''] = Intl.getCanonicalLocales(tag)
    return kept.length <= maxLocaleLength ? kept : undefined
  } catch {
    return undefined
  }
}
