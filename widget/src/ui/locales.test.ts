import { describe, expect, it } from 'vitest'
import { englishTexts } from './english-texts.ts'
import { launcherTexts } from './launcher-texts.ts'
import { chooseLocale } from './locale-choice.ts'
import { loadTexts, widgetLocales } from './locales.ts'
import { directionOf } from './shell.ts'

const offered = { default: 'fr', supported: ['en', 'fr', 'de-AT'] }

it.each([
  ['what the page asks for by name, whatever is offered', 'ja-JP', [], 'ja-JP'],
  ['what was meant by a tag that no standard knows', 'de_ch', [], 'de-CH'],
  ['the page before the browser', undefined, ['de-CH', 'en-GB'], 'de-CH'],
  ['the browser where the page has no language', undefined, ['', 'pt-BR', 'en-GB'], 'en-GB'],
  ['nothing that the installation does not offer', undefined, ['es', 'ar'], 'fr'],
  ['nothing that there are no texts for', 'xx', ['yy'], 'fr'],
])('takes %s', (_name, asked, wanted, chosen) => {
  expect(chooseLocale(asked, wanted, widgetLocales, offered)).toBe(chosen)
})

it('speaks English where nothing else fits', () => {
  expect(chooseLocale(undefined, ['', 'xx'], widgetLocales)).toBe('en')
  expect(chooseLocale(undefined, ['xx'], widgetLocales, { default: 'xx', supported: ['xx'] })).toBe('en')
})

describe.each(widgetLocales)('%s', (language) => {
  it('says everything that English says, in words of its own', async () => {
    const texts = await loadTexts(language)
    const flat = (all: object): [string, unknown][] =>
      Object.entries(all).flatMap(([key, value]) => (value && typeof value === 'object' ? flat(value) : [[key, value]]))
    const english = Object.fromEntries(flat(englishTexts))
    const same: string[] = []
    for (const [key, value] of flat(texts)) {
      const said = typeof value === 'function' ? value(3) : value
      expect(String(said).trim(), key).not.toBe('')
      if (said === (typeof english[key] === 'function' ? english[key](3) : english[key])) same.push(key)
    }
    // A conversation is one in French too.
    if (language !== 'en') expect(same.filter((key) => key !== 'log')).toEqual([])
    expect(texts.typing('Ada')).toContain('Ada')
    expect(texts.tooLong(4_000)).toMatch(/4|٤/)
  })

  it('has the same word on the launcher before and after the chat is loaded', async () => {
    expect(launcherTexts[language]![0]).toBe((await loadTexts(language)).openLauncher)
    expect(launcherTexts[language]![1]).toBeTruthy()
  })
})

it('counts in Arabic as Arabic does', async () => {
  const { openLauncherUnread } = await loadTexts('ar')
  const forms = [1, 2, 3, 11].map((count) => openLauncherUnread(count).replace(/[\d٠-٩]+/g, '#'))
  expect(new Set(forms).size).toBe(4)
})

it('knows what is written from right to left', () => {
  expect(['ar', 'ar-EG', 'he', 'fa'].map(directionOf)).toEqual(['rtl', 'rtl', 'rtl', 'rtl'])
  expect(['en', 'de', 'ja', 'arn'].map(directionOf)).toEqual(['ltr', 'ltr', 'ltr', 'ltr'])
})
