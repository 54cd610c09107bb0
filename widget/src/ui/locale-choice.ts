import type { WidgetConfig } from '../types.ts'

/** The language of a tag: `de` of `de-CH`. */
export function languageOf(tag: string): string {
  return tag.toLowerCase().split(/[-_]/)[0]!
}

/** Locales of the page and the browser, in order of preference. */
export function pageLocales(): string[] {
  return [document.documentElement.lang, ...navigator.languages].flatMap((tag) => wellFormed(tag) ?? [])
}

/** The browser's own language. */
export function browserLocale(): string | undefined {
  return typeof navigator === 'undefined' ? undefined : wellFormed(navigator.language)
}

/** The tag in a form that `Intl` and the service accept: without suffixes such as in `en-US@posix`. */
export function wellFormed(tag: string): string | undefined {
  try {
    return Intl.getCanonicalLocales(tag.split(/[@.]/)[0]!.replaceAll('_', '-'))[0]
  } catch {
    return undefined
  }
}

/**
 * The locale to speak, as a tag: the one that the page asks for where there are texts for it; else the first of the page's and the
 * browser's that has texts and is among the installation's; else the installation's own; else English.
 *
 * @param known languages or tags that there are texts for
 */
export function chooseLocale(
  asked: string | undefined,
  wanted: readonly string[],
  known: readonly string[],
  offered?: WidgetConfig['locale'],
): string {
  const isAmong = (tags: readonly string[], tag: string) => tags.some((one) => languageOf(one) === languageOf(tag))
  const choices = wanted.filter((tag) => !offered || isAmong(offered.supported, tag))
  const ranked = [asked && wellFormed(asked), ...choices, offered?.default]
  return ranked.find((tag) => tag && isAmong(known, tag)) || 'en'
}
