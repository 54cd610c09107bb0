import mailTexts from './mail-texts.json' with { type: 'json' }

/** Texts of mails to visitors and of the page that stops them. Names may be in any script. */
export type MailTexts = ReturnType<typeof mailTextsOf>['texts']

/** Returns the texts of the first locale whose language has texts, else the English ones. */
export function mailTextsOf(...locales: (string | undefined)[]) {
  const tags = locales.flatMap((locale = '') => [locale, locale.toLowerCase().split(/[-_]/)[0]!])
  const language = tags.find((each): each is keyof typeof mailTexts => Object.hasOwn(mailTexts, each)) ?? 'en'
  const { subject, intro, ...texts } = mailTexts[language]
  const fill = (text: string) => (site: string) => text.replace('{site}', () => site)
  return { language, texts: { ...texts, subject: fill(subject), intro: fill(intro) } }
}

export const directionOf = (language: string): 'ltr' | 'rtl' => (/^(ar|he)$/.test(language) ? 'rtl' : 'ltr')
