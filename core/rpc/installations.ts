import type { MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type {
  Appearance as AppearanceMessage,
  Form,
  WidgetConfig,
  WidgetConfigSchema,
} from '#proto/session/v1/session_pb.js'
import type {
  Availability as AvailabilityMessage,
  ConsentPolicy as ConsentPolicyMessage,
  CreateInstallationRequest,
  Installation as InstallationMessage,
  InstallationSchema,
  UpdateInstallationRequest,
} from '#proto/workspace/v1/workspace_pb.js'
import { contractLimits } from '../../contract/limits.ts'
import type { AllFields, ProtoFields } from '../../contract/proto-fields.ts'
import { widgetLanguages } from '../../contract/widget-locales.ts'
import { type AvailabilityState, availabilityOf } from '../availability/availability.ts'
import type { CoreConfig } from '../config.ts'
import { unseenAfterDefault } from '../conversations/unseen-messages.ts'
import { invalid } from '../errors.ts'
import { canonicalLocale } from '../workspaces/installation-settings.ts'
import type {
  Appearance,
  Availability,
  ConsentPolicy,
  FormField,
  Forms,
  Installation,
  InstallationSettings,
  Translation,
} from '../workspaces/model.ts'
import { fieldsOf, given, withoutEmpty } from './proto-values.ts'

/** Messages that a browser queues while it cannot send. */
const outboxMax = 50
const reconnectMinMs = 500

/** Code does not compile if the request to create or the request to update lacks a setting. */
type SettingsRequest = Pick<CreateInstallationRequest, Exclude<keyof InstallationSettings, 'enabled'>> &
  Partial<Pick<UpdateInstallationRequest, 'enabled'>>

export function fromSettings(request: SettingsRequest): InstallationSettings {
  const { origins, appearance, capabilities, forms, availability, consent } = request
  return given<AllFields<InstallationSettings>>({
    name: request.name,
    enabled: request.enabled,
    origins: origins.length === 0 ? undefined : origins,
    appearance: appearance && fromAppearance(appearance),
    capabilities: capabilities && given(fieldsOf(capabilities)),
    defaultLocale: request.defaultLocale,
    forms:
      forms &&
      given({ preChat: forms.preChat && fromForm(forms.preChat), offline: forms.offline && fromForm(forms.offline) }),
    availability: availability && fromAvailability(availability),
    consent: consent && fromConsentPolicy(consent),
    unseenAfterMinutes: request.unseenAfterMinutes,
    mailUnseenAnswers: request.mailUnseenAnswers,
  })
}

export function toInstallation({
  identitySecrets,
  forms,
  ...installation
}: Installation): MessageInitShape<typeof InstallationSchema> {
  return {
    unseenAfterMinutes: unseenAfterDefault,
    mailUnseenAnswers: true,
    ...installation,
    forms: toForms(forms ?? {}),
    availability: toAvailability(availabilityOf(installation)),
    identityKeyIds: identitySecrets.map(({ kid }) => kid),
  } satisfies Partial<Record<keyof ProtoFields<InstallationMessage>, unknown>>
}

export function toWidgetConfig(
  installation: Installation,
  { online, nextChangeAt, usualAnswerMinutes }: AvailabilityState & { usualAnswerMinutes: number | undefined },
  config: CoreConfig,
): MessageInitShape<typeof WidgetConfigSchema> {
  const { publicSiteKey, defaultLocale, appearance, capabilities, forms, consent } = installation
  return {
    publicSiteKey,
    defaultLocale,
    supportedLocales: [...new Set([defaultLocale, ...widgetLanguages])],
    appearance,
    capabilities,
    forms: toForms({
      preChat: capabilities.preChatForm ? (forms?.preChat ?? []) : undefined,
      offline: capabilities.offlineForm ? (forms?.offline ?? []) : undefined,
    }),
    consent: consent ?? { required: false },
    online,
    nextChangeAt: nextChangeAt && timestampFromDate(nextChangeAt),
    usualAnswerMinutes,
    limits: {
      bodyMaxLength: Math.min(config.MESSAGE_BODY_MAX_LENGTH, contractLimits.bodyMaxLength),
      pageContextMaxBytes: config.PAGE_CONTEXT_MAX_BYTES,
      historyPageMax: contractLimits.historyPageMax,
      screenshotMaxBytes: config.SCREENSHOT_MAX_BYTES,
      outboxMax,
    },
    realtime: {
      // The gateway replaces this value with its own interval.
      heartbeatSeconds: 15,
      reconnectMinMs,
      reconnectMaxMs: config.RECONNECT_MAX_MS,
    },
  } satisfies Record<keyof ProtoFields<WidgetConfig>, unknown>
}

/** Converts the appearance. An empty text counts as absent. */
function fromAppearance(message: AppearanceMessage): Partial<Appearance> {
  const { translations, openingReplies, position, ...texts } = fieldsOf(message)
  const translated = Object.entries(translations).map(([tag, { title, greeting, openingReplies }]) => [
    canonicalLocale(tag) ?? tag,
    withoutEmpty({
      title,
      greeting,
      openingReplies: openingReplies?.texts.length ? { texts: openingReplies.texts } : undefined,
    } satisfies AllFields<Translation>),
  ])
  const byTag = Object.fromEntries(translated)
  const tags = Object.keys(byTag).length
  if (tags < translated.length) throw invalid('/appearance/translations', 'uniqueItems')
  return withoutEmpty({
    ...texts,
    position: position as Appearance['position'],
    translations: tags > 0 ? byTag : undefined,
    openingReplies: openingReplies && { texts: openingReplies.texts },
  })
}

const defaultMaxLength = { text: 256, email: 254, tel: 32, textarea: 4000 }

function toForms({ preChat, offline }: Forms) {
  return { preChat: preChat && { fields: preChat }, offline: offline && { fields: offline } }
}

function fromForm({ fields }: Form): FormField[] {
  return fields.map((field) => {
    const type = field.type as FormField['type']
    return { ...fieldsOf(field), type, maxLength: field.maxLength ?? defaultMaxLength[type] ?? 256 }
  })
}

function toAvailability({ weeklyHours, exceptions, ...rest }: Availability) {
  return { ...rest, weeklyHours: { hours: weeklyHours }, exceptions: { dates: exceptions } }
}

function fromAvailability(message: AvailabilityMessage): Partial<Availability> {
  const { mode, timeZone, weeklyHours, exceptions, requiresOperator } = message
  return given<AllFields<Partial<Availability>>>({
    mode: mode as Availability['mode'] | undefined,
    timeZone,
    requiresOperator,
    weeklyHours: weeklyHours?.hours.map(fieldsOf),
    exceptions: exceptions?.dates.map(({ date, hours }) => ({ date, hours: hours.map(fieldsOf) })),
  })
}

/** An empty text counts as absent. */
const fromConsentPolicy = (message: ConsentPolicyMessage): ConsentPolicy => ({
  required: message.required,
  ...withoutEmpty(fieldsOf(message)),
})
