import { englishChatTexts } from './locales/en.ts'
import { englishFormTexts } from './locales/en-forms.ts'
import { englishRequestTexts } from './locales/en-requests.ts'
import type { WidgetTexts } from './texts.ts'

/** All of English: the keys that `texts` and `localeTexts` may have. */
export const englishTexts: WidgetTexts = { ...englishChatTexts, ...englishFormTexts, ...englishRequestTexts }
