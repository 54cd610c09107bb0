import type { Member } from './model.ts'
import operatorTexts from './operator-texts.json' with { type: 'json' }

/** Returns the texts of pushes and mails to an operator; in English if the language is unknown. */
export const operatorTextsOf = ({ language = 'en' }: Pick<Member, 'language'> = {}): typeof operatorTexts.en =>
  operatorTexts[language]
