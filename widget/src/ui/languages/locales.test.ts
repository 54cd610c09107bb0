import { describe, expect, it } from 'vitest'
import { loadPackagePart } from '../package-widget.ts'
import { directionOf } from '../panel/shell.ts'
import { englishTexts } from './en.ts'
import { launcherTexts } from './launcher-texts.ts'
import { chooseLocale } from './locale-choice.ts'
import { loadTexts, widgetLocales } from './locales.ts'

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
    expect(texts.typing('Ada')).toContain('Ada')
    expect(texts.tooLong(4_000)).toMatch(/4|٤/)
  })

  it('the label of the launcher is the same before and after the chat is loaded', async () => {
    expect(launcherTexts[language]![0]).toBe((await loadTexts(language, loadPackagePart)).openLauncher)
    expect(launcherTexts[language]![1]).toBeTruthy()
  })
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
