import type { FieldIssue } from '../../contract/errors.ts'
import { field, quickReplyIssues, text } from '../rules.ts'
import { type Appearance, hasTexts, type Translation } from './model.ts'

const maxTranslations = 50

/** Undefined if the text is no locale tag. */
export function canonicalLocale(tag: string): string | undefined {
  try {
    return tag.length <= 35 ? Intl.getCanonicalLocales(tag)[0] : undefined
  } catch {
    return undefined
  }
}

/** The issues do not contain an invalid locale. */
export function translationIssues(translations: Record<string, Translation>): (FieldIssue | undefined)[] {
  const path = '/appearance/translations'
  const tags = Object.keys(translations).map(canonicalLocale)
  if (tags.includes(undefined)) return [{ path, rule: 'locale' }]
  if (new Set(tags).size < tags.length) return [{ path, rule: 'uniqueItems' }]
  if (tags.length > maxTranslations) return [{ path, rule: 'maxProperties' }]
  return Object.entries(translations).flatMap(([tag, { title, greeting, openingReplies }]) => [
    field(`${path}/${tag}/title`, title, text(1, 128)),
    field(`${path}/${tag}/greeting`, greeting, text(1, 1024)),
    ...quickReplyIssues(`${path}/${tag}/openingReplies/texts`, openingReplies?.texts ?? []),
  ])
}

export function withTexts({ translations = {}, ...appearance }: Appearance): Appearance {
  const kept = Object.entries(translations).filter(([, translation]) => hasTexts(translation))
  return kept.length === 0 ? appearance : { ...appearance, translations: Object.fromEntries(kept) }
}
