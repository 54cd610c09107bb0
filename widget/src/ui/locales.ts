import { languageOf } from './locale-choice.ts'
import { englishChatTexts } from './locales/en.ts'
import type { ShownTexts, WidgetTexts } from './texts.ts'

/** The languages that the package speaks. */
export const widgetLocales = ['en', 'de', 'es', 'fr', 'ar', 'ja'] as const

type Language = (typeof widgetLocales)[number]

/** Each language but English is fetched when it is wanted. */
const sources: Record<Exclude<Language, 'en'>, () => Promise<{ texts: WidgetTexts }>> = {
  de: () => import('./locales/de.ts'),
  es: () => import('./locales/es.ts'),
  fr: () => import('./locales/fr.ts'),
  ar: () => import('./locales/ar.ts'),
  ja: () => import('./locales/ja.ts'),
}

/** Loads the texts of a language; English if loading fails. */
export async function loadTexts(locale: string): Promise<ShownTexts> {
  const source = (sources as Record<string, (() => Promise<{ texts: WidgetTexts }>) | undefined>)[languageOf(locale)]
  try {
    return source ? (await source()).texts : englishChatTexts
  } catch {
    return englishChatTexts
  }
}
