import type { LoadPart } from '../parts.ts'
import { englishTexts, type WidgetTexts } from './en.ts'
import { languageOf } from './locale-choice.ts'

/** Languages in which this package has all texts. */
export const widgetLocales = ['en', 'de', 'es', 'fr', 'ar', 'ja'] as const

/**
 * Loads the texts of a locale's language. Returns the English texts if the language is unknown or
 * loading fails.
 */
export async function loadTexts(locale: string, loadPart: LoadPart): Promise<WidgetTexts> {
  const language = languageOf(locale) as (typeof widgetLocales)[number]
  if (language === 'en' || !widgetLocales.includes(language)) return englishTexts
  return loadPart(language).then(
    ({ texts }) => texts,
    () => englishTexts,
  )
}
