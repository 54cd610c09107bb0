import { languageOf } from './locale-choice.ts'
import { englishChatTexts } from './locales/en.ts'
import type { ShownTexts, WidgetTexts } from './texts.ts'

/** Languages in which this package has all texts. */
export const widgetLocales = ['en', 'de', 'es', 'fr', 'ar', 'ja'] as const

type Language = (typeof widgetLocales)[number]

/**
 * Functions that import the texts of a language. The English texts are part of the chat; other
 * languages are loaded on demand.
 */
const sources: Record<Exclude<Language, 'en'>, () => Promise<{ texts: WidgetTexts }>> = {
  de: () => import('./locales/de.ts'),
  es: () => import('./locales/es.ts'),
  fr: () => import('./locales/fr.ts'),
  ar: () => import('./locales/ar.ts'),
  ja: () => import('./locales/ja.ts'),
}

/**
 * Loads the texts of a locale's language. Returns the English texts if the language is unknown or
 * loading fails.
 */
export async function loadTexts(locale: string): Promise<ShownTexts> {
  const source = (sources as Record<string, (() => Promise<{ texts: WidgetTexts }>) | undefined>)[languageOf(locale)]
  try {
    return source ? (await source()).texts : englishChatTexts
  } catch {
    return englishChatTexts
  }
}
