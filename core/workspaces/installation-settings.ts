import type { FieldIssue } from '../../contract/errors.ts'
import { isOriginEntry } from '../../contract/origins.ts'
import {
  field,
  hexColour,
  integer,
  line,
  locale,
  oneOf,
  pictureUrl,
  quickReplyIssues,
  text,
  validate,
} from '../rules.ts'
import { consentPolicyIssues } from './consent-policy.ts'
import { formDefinitionIssues } from './forms.ts'
import type { Appearance, InstallationSettings } from './model.ts'
import { availabilityIssues } from './opening-hours.ts'
import { translationIssues } from './translations.ts'

const maxOrigins = 64

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
    consent: consentPolicyIssues('/consent', consent),
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
