import type { WidgetConfig } from '../../vocabulary/types.ts'

/** Returns the language of a locale tag, for example `de` for `de-CH`. */
export function languageOf(tag: string): string {
  return tag.toLowerCase().split(/[-_]/)[0]!
}

/** Returns the locales of the page and the browser as they are given, in order of preference. */
export const pageLocales = () => [document.documentElement.lang, ...navigator.languages]

export function browserLocale(): string | undefined {
  return typeof navigator === 'undefined' ? undefined : wellFormed(navigator.language)
}

/** Returns the locale with the browser's region, for dates. A locale with a region stays as it is. */
export function regionalLocale(locale: string): string {
  const tags = locale.includes('-') ? [] : navigator.languages.flatMap((tag) => wellFormed(tag) ?? [])
  return tags.find((tag) => languageOf(tag) === languageOf(locale)) ?? locale
}

/** Returns the canonical tag without a suffix such as `@posix`; undefined if it is invalid. */
export function wellFormed(tag: string): string | undefined {
  try {
    return Intl.getCanonicalLocales(tag.split(/[@.]/)[0]!.replaceAll('_', '-'))[0]
  } catch {
    return undefined
  }
}

/**
 * Returns the canonical locale of the user interface, which is the first of these locales for which
 * texts exist:
 *
 * - the locale that the page asks for
 * - the preferred locales, without those that the installation does not support
 * - the default locale of the installation
 * - English
 *
 * @param asked locale that the page asks for
 * @param wanted preferred locales of page and browser
 * @param known languages or tags for which texts exist
 * @param offered locales of the installation
 */
export function chooseLocale(...[asked, wanted, ...rest]: Parameters<typeof firstLocale>): string {
  const valid = wanted.flatMap((tag) => wellFormed(tag) ?? [])
  return firstLocale(asked && wellFormed(asked), valid, ...rest)
}

/** Like `chooseLocale`, without checking and changing the tags. The launcher needs the language only. */
export function firstLocale(
  asked: string | undefined,
  wanted: readonly string[],
  known: readonly string[],
  offered?: WidgetConfig['locale'],
): string {
  const isAmong = (tags: readonly string[], tag: string) => tags.some((one) => languageOf(one) === languageOf(tag))
  const choices = wanted.filter((tag) => !offered || isAmong(offered.supported, tag))
  return [asked, ...choices, offered?.default].find((tag) => tag && isAmong(known, tag)) || 'en'
}
