import { field, hexColour, locale, oneOf, text, url, validate } from '../rules.ts'
import { consentPolicyIssues } from './consent-policy.ts'
import { formDefinitionIssues } from './forms.ts'
import { type Appearance, type InstallationSettings, isOriginEntry } from './model.ts'
import { availabilityIssues } from './opening-hours.ts'
import { translationIssues } from './translations.ts'

const maxOrigins = 64

/** Throws `ValidationFailed` with every invalid field of an installation. */
export function validateInstallation({
  origins,
  appearance,
  defaultLocale,
  forms,
  availability,
  consent,
}: InstallationSettings) {
  validate(
    field('/origins', origins, ({ length }) =>
      length < 1 ? 'minItems' : length > maxOrigins ? 'maxItems' : undefined,
    ),
    ...(origins ?? []).map((origin, index) =>
      field(`/origins/${index}`, origin, (entry) => (isOriginEntry(entry) ? undefined : 'format')),
    ),
    field('/appearance/title', appearance?.title, text(1, 128)),
    field('/appearance/greeting', appearance?.greeting, text(0, 1024)),
    field('/appearance/accentColor', appearance?.accentColor, hexColour),
    field('/appearance/position', appearance?.position, oneOf<Appearance['position']>('left', 'right')),
    field('/appearance/logoUrl', appearance?.logoUrl, url('https')),
    ...translationIssues(appearance?.translations ?? {}),
    field('/defaultLocale', defaultLocale, locale),
    ...formDefinitionIssues('/forms/preChat/fields', forms?.preChat ?? []),
    ...formDefinitionIssues('/forms/offline/fields', forms?.offline ?? []),
    ...availabilityIssues(availability ?? {}),
    ...consentPolicyIssues('/consent', consent),
  )
}
