import { type Static, type TSchema, Type } from 'typebox'
import type {
  Appearance,
  AppearanceTranslation,
  Capabilities,
  Consent,
  FormField,
  Form as FormMessage,
  Forms,
  Limits,
  QuickReplies,
  Realtime,
  WidgetConfig,
} from '#proto/session/v1/session_pb.js'
import { compatibility } from '../../contract/event-categories.ts'
import { widgetLanguages } from '../../contract/widget-locales.ts'
import about from './about.json' with { type: 'json' }
import { Identifier, Named, OneOf, type SchemasOf, Strict, Time } from './fields.ts'

export const ConfigParams = Strict({ publicSiteKey: { ...Identifier, examples: ['pk_demo'] } })

const Count = Type.Integer({ minimum: 0 })
/** A core omits capabilities that the installation does not have. */
const Capability = Type.Boolean({ default: false })

const Form = Strict({
  fields: Type.Array(
    Strict({
      name: Type.String(),
      label: Type.String(),
      type: Named('text', 'email', 'tel', 'textarea'),
      required: Type.Boolean(),
      maxLength: Type.Integer({ minimum: 0, default: 0 }),
    } satisfies SchemasOf<FormField>),
  ),
} satisfies SchemasOf<FormMessage>)

const OpeningReplies = Type.Optional(Strict({ texts: Type.Array(Type.String()) } satisfies SchemasOf<QuickReplies>))

/** Fields of the core that the answer has in `locale` and `availability`. */
type Regrouped = 'defaultLocale' | 'supportedLocales' | 'online' | 'nextChangeAt'
type GatewayOwn = 'contract' | 'contractVersion' | 'locale' | 'availability' | 'compatibility'

export const WidgetConfigAnswer = Strict(
  {
    contract: Type.String(),
    contractVersion: Type.String(),
    publicSiteKey: Type.String(),
    locale: Strict({ default: Type.String(), supported: Type.Array(Type.String()) }),
    appearance: Strict({
      title: Type.String(),
      greeting: Type.String(),
      accentColor: Type.String(),
      position: OneOf(['left', 'right']),
      logoUrl: Type.Optional(Type.String()),
      translations: Type.Optional(
        Type.Record(
          Type.String(),
          Strict({
            title: Type.Optional(Type.String()),
            greeting: Type.Optional(Type.String()),
            openingReplies: OpeningReplies,
          } satisfies SchemasOf<AppearanceTranslation>),
          { description: 'Texts in other languages, by locale tag.' },
        ),
      ),
      openingReplies: OpeningReplies,
    } satisfies SchemasOf<Appearance>),
    capabilities: Strict({
      identity: Capability,
      typing: Capability,
      pageContext: Capability,
      navigation: Capability,
      screenshots: Capability,
      preChatForm: Capability,
      offlineForm: Capability,
      messageRetryRoute: Capability,
      presence: Capability,
      receipts: Capability,
      rating: Capability,
      stopAnswer: Capability,
    } satisfies SchemasOf<Capabilities>),
    forms: Strict({ preChat: Type.Optional(Form), offline: Type.Optional(Form) } satisfies SchemasOf<Forms>),
    consent: Strict({
      required: Type.Boolean(),
      policyUrl: Type.Optional(Type.String()),
      policyVersion: Type.Optional(Type.String()),
    } satisfies SchemasOf<Consent>),
    availability: Strict({ online: Type.Boolean(), nextChangeAt: Type.Optional(Time) }),
    usualAnswerMinutes: Type.Optional(
      Type.Integer({ minimum: 1, description: 'Half of the newest conversations were answered within this time.' }),
    ),
    compatibility: Strict(
      {
        informational: OneOf([compatibility.informational]),
        security: OneOf([compatibility.security]),
        command: OneOf([compatibility.command]),
      },
      { description: 'What a client does with an event of an unknown type, by the `category` of the event.' },
    ),
    limits: Strict({
      bodyMaxLength: Count,
      pageContextMaxBytes: Count,
      historyPageMax: Count,
      screenshotMaxBytes: Count,
      outboxMax: Count,
    } satisfies SchemasOf<Limits>),
    realtime: Strict({
      heartbeatSeconds: Count,
      reconnectMinMs: Count,
      reconnectMaxMs: Count,
    } satisfies SchemasOf<Realtime>),
  } satisfies SchemasOf<WidgetConfig, Regrouped> & Record<GatewayOwn, TSchema>,
  {
    ...about.WidgetConfigAnswer,
    examples: about.WidgetConfigAnswer.examples.map((example) => ({
      ...example,
      locale: { ...example.locale, supported: widgetLanguages },
    })),
  },
)
export type WidgetConfigAnswer = Static<typeof WidgetConfigAnswer>
