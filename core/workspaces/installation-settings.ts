import type { FieldIssue } from '../../contract/errors.ts'
import { contractLimits } from '../../contract/limits.ts'
import { isOriginEntry } from '../../contract/origins.ts'
import {
  field,
  hexColour,
  integer,
  issueIf,
  line,
  locale,
  oneOf,
  pictureUrl,
  quickReplyIssues,
  text,
  url,
  validate,
} from '../rules.ts'
import { formDefinitionIssues } from './forms.ts'
import { type Appearance, type ConsentPolicy, hasTexts, type InstallationSettings, type Translation } from './model.ts'
import { availabilityIssues } from './opening-hours.ts'

const maxOrigins = 64
const maxTranslations = 50

/** Throws `ValidationFailed` with every invalid field. */
export function validateInstallation(settings: InstallationSettings) {
  const { name, origins, appearance, defaultLocale, forms, availability, consent, unseenAfterMinutes } = settings
  const issues: Record<keyof InstallationSettings, (FieldIssue | undefined)[]> = {
    origins: [
      field('/origins', origins, ({ length }) =>
        length < 1 ? 'minItems' : length > maxOrigins ? 'maxItems' : undefined,
      ),
      ...(origins ?? []).map((origin, index) =>
        field(`/origins/${index}`, origin, (entry) => (isOriginEntry(entry) ? undefined : 'format')),
      ),
    ],
    name: [field('/name', name || undefined, line(1, 80))],
    enabled: [],
    appearance: appearanceIssues(appearance ?? {}),
    capabilities: [],
    defaultLocale: [field('/defaultLocale', defaultLocale, locale)],
    forms: [
      ...formDefinitionIssues('/forms/preChat/fields', forms?.preChat ?? []),
      ...formDefinitionIssues('/forms/offline/fields', forms?.offline ?? []),
    ],
    availability: availabilityIssues(availability ?? {}),
    consent: consent ? consentIssues(consent) : [],
    unseenAfterMinutes: [field('/unseenAfterMinutes', unseenAfterMinutes, integer(0, 1440))],
    mailUnseenAnswers: [],
  }
  validate(...Object.values(issues).flat())
}

function appearanceIssues(appearance: Partial<Appearance>) {
  const { title, greeting, accentColor, position, logoUrl, translations, openingReplies } = appearance
  const issues: Record<keyof Appearance, (FieldIssue | undefined)[]> = {
    title: [field('/appearance/title', title, text(1, 128))],
    greeting: [field('/appearance/greeting', greeting, text(0, 1024))],
    accentColor: [field('/appearance/accentColor', accentColor, hexColour)],
    position: [field('/appearance/position', position, oneOf<Appearance['position']>('left', 'right'))],
    logoUrl: [field('/appearance/logoUrl', logoUrl, pictureUrl)],
    translations: translationIssues(translations ?? {}),
    openingReplies: quickReplyIssues('/appearance/openingReplies/texts', openingReplies?.texts ?? []),
  }
  return Object.values(issues).flat()
}

/** URL and version belong together, and a required policy has both. */
function consentIssues({ required, policyUrl, policyVersion }: ConsentPolicy) {
  if (!required && policyUrl === undefined && policyVersion === undefined) return []
  return [
    issueIf(policyUrl === undefined, '/consent/policyUrl', 'required'),
    field('/consent/policyUrl', policyUrl, url('https')),
    issueIf(policyVersion === undefined, '/consent/policyVersion', 'required'),
    field('/consent/policyVersion', policyVersion, line(1, contractLimits.policyVersionMaxLength)),
  ]
}

/** Returns undefined if the text is no locale tag. */
export function canonicalLocale(tag: string): string | undefined {
  try {
    return tag.length <= 35 ? Intl.getCanonicalLocales(tag)[0] : undefined
  } catch {
    return undefined
  }
}

/** The issues do not contain an invalid locale. */
function translationIssues(translations: Record<string, Translation>) {
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
