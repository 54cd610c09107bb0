import { localStore } from './storages.ts'

export const languages = { en: 'English', de: 'Deutsch' }

const key = 'service.console.language'
const wanted = [localStore.getItem(key), ...(globalThis.navigator?.languages ?? [])].find(
  (tag) => tag && tag.slice(0, 2) in languages,
)

// Modules that have texts wait for this one, so that each text is read in the right language.
const texts: Record<string, string> | undefined = wanted?.startsWith('de')
  ? await import('./languages/de.json').then(
      (file) => file.default,
      () => undefined,
    )
  : undefined

/** The chosen language, or else the first known language of the browser. English if the texts do not load. */
export const language: string = texts ? 'de' : 'en'
globalThis.document?.documentElement.setAttribute('lang', language)

export function chooseLanguage(tag: string) {
  localStore.setItem(key, tag)
  location.reload()
}

/**
 * Returns a text in the language of the console, with the values in the places `{0}`, `{1}`, … The
 * build calls it for the texts of the sources, see `console/translation.ts`.
 */
export const translate = (text: string, ...values: unknown[]) =>
  text
    .replace(/\S(.*\S)?/s, (english) => texts?.[english] ?? english)
    .replace(/\{(\d)\}/g, (_, index) => String(values[index]))

/** Returns the text for the middle of a sentence, where English uses lower case. */
export const inSentence = (text: string) => (language === 'en' ? text.toLowerCase() : text)
