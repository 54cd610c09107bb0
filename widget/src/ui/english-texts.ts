import { englishChatTexts } from './locales/en.ts'
import { englishConsentTexts } from './locales/en-consent.ts'
import { englishFormTexts } from './locales/en-forms.ts'
import { englishRequestTexts } from './locales/en-requests.ts'
import type { WidgetTexts } from './texts.ts'

/** All English texts. Their keys are the keys that the options `texts` and `localeTexts` accept. */
export const englishTexts: WidgetTexts = {
  ...englishChatTexts,
  ...englishFormTexts,
  ...englishConsentTexts,
  ...englishRequestTexts,
}
