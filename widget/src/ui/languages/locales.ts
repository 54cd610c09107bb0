import { widgetLocales } from '../../../../contract/widget-locales.ts'
import type { LoadPart, TextData } from '../parts.ts'
import { englishTexts, type WidgetTexts } from './en.ts'
import { languageOf } from './locale-choice.ts'

/** Falls back to English if the language is unknown or loading fails. */
export async function loadTexts(locale: string, loadPart: LoadPart): Promise<WidgetTexts> {
  const language = [locale, languageOf(locale)].find((tag) => widgetLocales.includes(tag)) ?? 'en'
  if (language === 'en') return englishTexts
  return loadPart(language).then(
    ({ texts }) => textsOf(texts, language) as WidgetTexts,
    () => englishTexts,
  )
}

/** Replaces each text that has a placeholder, such as `{name}`, or plural forms by a function of the value. */
function textsOf(data: TextData, language: string): unknown {
  const fill = (text: unknown, value: string | number) =>
    String(text).replace(/\{\w+\}/, () => value.toLocaleString(language))
  if (typeof data === 'string') return data.includes('{') ? (value: string | number) => fill(data, value) : data
  if (Array.isArray(data)) return data
  if (String(data.other).includes('{'))
    return (count: number) => fill(data[new Intl.PluralRules(language).select(count)], count)
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, textsOf(value, language)]))
}
