import { describe, expect, it } from 'vitest'
import { usualFields } from '../../../../browser/chat/usual-fields.ts'
import personRequests from '../../../../contract/person-requests.json' with { type: 'json' }
import { widgetLanguages, widgetLocales } from '../../../../contract/widget-locales.ts'
import usualLabels from '../forms/usual-labels.json' with { type: 'json' }
import { directionOf } from '../panel/shell.ts'
import type { TextData } from '../parts.ts'
import { loadPackagePart } from '../service-widget.ts'
import { englishTexts } from './en.ts'
import { launcherTexts } from './launcher-texts.ts'
import { chooseLocale } from './locale-choice.ts'
import { loadTexts } from './locales.ts'

const offered = { default: 'fr', supported: ['en', 'fr', 'de-AT'] }

it.each([
  ['the requested locale even if the installation does not support it', 'ja-JP', [], 'ja-JP'],
  ['the canonical form of a requested tag with an underscore', 'de_ch', [], 'de-CH'],
  ['the first preferred locale that the installation supports', undefined, ['de-CH', 'en-GB'], 'de-CH'],
  ['the next supported locale if the first ones are empty or unsupported', undefined, ['', 'pt-BR', 'en-GB'], 'en-GB'],
  ['the default if the installation supports no preferred locale', undefined, ['es', 'ar'], 'fr'],
  ['the default if no texts exist for the requested and preferred locales', 'xx', ['yy'], 'fr'],
])('chooseLocale returns %s', (_name, asked, wanted, chosen) => {
  expect(chooseLocale(asked, wanted, widgetLocales, offered)).toBe(chosen)
})

it('chooseLocale returns English if no texts exist for any other choice', () => {
  expect(chooseLocale(undefined, ['', 'xx'], widgetLocales)).toBe('en')
  expect(chooseLocale(undefined, ['xx'], widgetLocales, { default: 'xx', supported: ['xx'] })).toBe('en')
})

describe.each(widgetLocales)('the language %s', (language) => {
  it('every English text is translated', async () => {
    const texts = await loadTexts(language, loadPackagePart)
    const flat = (all: object): [string, unknown][] =>
      Object.entries(all).flatMap(([key, value]) => (value && typeof value === 'object' ? flat(value) : [[key, value]]))
    const english = Object.fromEntries(flat(englishTexts))
    const same: string[] = []
    for (const [key, value] of flat(texts)) {
      const said = typeof value === 'function' ? value(3) : value
      expect(String(said).trim(), key).not.toBe('')
      if (said === (typeof english[key] === 'function' ? english[key](3) : english[key])) same.push(key)
    }
    // “Assistant” and the label of the message log, “Conversation”, are the same in English and French.
    if (language !== 'en') expect(same.filter((key) => !['log', 'assistant'].includes(key))).toEqual([])
    expect(texts.talkToPerson).toBe(personRequests[language as keyof typeof personRequests])
    expect(texts.typing('Ada')).toContain('Ada')
    expect(texts.tooLong(4_000)).toMatch(/4|٤/)
  })

  it.skipIf(language === 'en')('has the keys, placeholders and plural forms of its file complete', async () => {
    const { texts, reviewedBy } = await loadPackagePart(language)
    // Until a speaker of the language has checked the file.
    expect(reviewedBy).toBeNull()
    const compare = (english: unknown, own: TextData, key: string): void => {
      if (key === 'openLauncherUnread') {
        const { pluralCategories } = new Intl.PluralRules(language).resolvedOptions()
        expect(Object.keys(own).sort()).toEqual([...pluralCategories].sort())
        expect(Object(own).other).toContain('{count}')
      } else if (typeof english === 'object' && !Array.isArray(english)) {
        expect(Object.keys(own).sort(), key).toEqual(Object.keys(english as object).sort())
        for (const [name, value] of Object.entries(english as object)) compare(value, Object(own)[name], name)
      } else {
        const parameter = typeof english === 'function' ? /\((\w+)\)/.exec(String(english))![1] : undefined
        expect(
          [...String(own).matchAll(/\{(.*?)\}/g)].map(([, name]) => name),
          key,
        ).toEqual(parameter ? [parameter] : [])
      }
    }
    compare(englishTexts, texts, '')
  })
})

it('the labels of the usual fields are in every language of the widget', () => {
  const english = usualFields.offline.map(({ label }) => label)
  expect(Object.keys(usualLabels)).toEqual(english)
  for (const byLanguage of Object.values(usualLabels))
    expect(['en', ...Object.keys(byLanguage)]).toEqual(widgetLanguages)
})

it.each(Object.keys(launcherTexts))(
  'the label of the launcher in the language %s is the same before and after the chat is loaded',
  async (language) => {
    expect(launcherTexts[language]![0]).toBe((await loadTexts(language, loadPackagePart)).openLauncher)
    expect(launcherTexts[language]![1]).toBeTruthy()
  },
)

it('the texts of a region are preferred to those of its language', async () => {
  const textIn = async (locale: string) => (await loadTexts(locale, loadPackagePart)).title
  expect(await textIn('pt-BR')).toBe('Fale conosco')
  expect(await textIn('pt-AO')).toBe('Fale connosco')
  expect(await textIn('zh-Hans-CN')).toBe('联系我们')
})

it('the Arabic label for unread messages has different plural forms for 1, 2, 3 and 11 messages', async () => {
  const { openLauncherUnread } = await loadTexts('ar', loadPackagePart)
  const forms = [1, 2, 3, 11].map((count) => openLauncherUnread(count).replace(/[\d٠-٩]+/g, '#'))
  expect(new Set(forms).size).toBe(4)
})

it('directionOf returns rtl only for right-to-left languages', () => {
  expect(['ar', 'ar-EG', 'he', 'fa'].map(directionOf)).toEqual(['rtl', 'rtl', 'rtl', 'rtl'])
  expect(['en', 'de', 'ja', 'arn'].map(directionOf)).toEqual(['ltr', 'ltr', 'ltr', 'ltr'])
})
