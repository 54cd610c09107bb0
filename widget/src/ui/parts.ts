import type { WidgetTexts } from './languages/en.ts'

/**
 * The parts of the user interface that are loaded when a visitor needs them: the forms, the card
 * of a new answer, the cards that ask for a permission, for consent or for a rating, and each language
 * besides English. A part imports nothing that is loaded already,
 * so that the script tag's build of it is one file without imports.
 */
export interface Parts {
  requests: typeof import('./requests/request-card.ts')
  forms: typeof import('./forms/form-view.ts')
  answer: typeof import('./outside/answer-card.ts')
  consent: typeof import('./forms/consent-card.ts')
  rating: typeof import('./forms/rating-card.ts')
  de: Language
  es: Language
  fr: Language
  ar: Language
  ja: Language
}

interface Language {
  texts: WidgetTexts
}

/** Loads a part. Rejects if loading fails; a later call tries again. */
export type LoadPart = <Name extends keyof Parts>(name: Name) => Promise<Parts[Name]>
