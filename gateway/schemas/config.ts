import { type Static, type TSchema, Type } from 'typebox'
import {
  type Appearance,
  type AppearanceTranslation,
  CapabilitiesSchema,
  type Consent,
  type FormField,
  type Form as FormMessage,
  type Forms,
  LimitsSchema,
  type QuickReplies,
  RealtimeSchema,
  type WidgetConfig,
} from '#proto/session/v1/session_pb.js'
import { compatibility } from '../../contract/event-categories.ts'
import { widgetLanguages } from '../../contract/widget-locales.ts'
import about from './about.json' with { type: 'json' }
import { FieldsOf, Identifier, Named, OneOf, OptionalText, type SchemasOf, Strict, Text, Time } from './fields.ts'

export const ConfigParams = Strict({ publicSiteKey: { ...Identifier, examples: ['pk_demo'] } })

const Count = Type.Integer({ minimum: 0 })
/** The default is false, because a core omits capabilities that the installation does not have. */
const Capability = Type.Boolean({ default: false })

const Form = Strict({
  fields: Type.Array(
    Strict({
      name: Text,
      label: Text,
      type: Named('text', 'email', 'tel', 'textarea'),
      required: Type.Boolean(),
      maxLength: Type.Integer({ minimum: 0, default: 0 }),
    } satisfies SchemasOf<FormField>),
  ),
} satisfies SchemasOf<FormMessage>)

const OpeningReplies = Type.Optional(Strict({ texts: Type.Array(Text) } satisfies SchemasOf<QuickReplies>))

/** Fields of the core that the answer has in `locale` and `availability`. */
type Regrouped = 'defaultLocale' | 'supportedLocales' | 'online' | 'nextChangeAt'
type GatewayOwn = 'contract' | 'contractVersion' | 'locale' | 'availability' | 'compatibility'

export const WidgetConfigAnswer = Strict(
  {
    contract: Text,
    contractVersion: Text,
    publicSiteKey: Text,
    locale: Strict({ default: Text, supported: Type.Array(Text) }),
    appearance: Strict({
      title: Text,
      greeting: Text,
      accentColor: Text,
      position: OneOf(['left', 'right']),
      logoUrl: OptionalText,
      translations: Type.Optional(
        Type.Record(
          Text,
          Strict({
            title: OptionalText,
            greeting: OptionalText,
            openingReplies: OpeningReplies,
          } satisfies SchemasOf<AppearanceTranslation>),
          { description: 'Texts in other languages, by locale tag.' },
        ),
      ),
      openingReplies: OpeningReplies,
    } satisfies SchemasOf<Appearance>),
    capabilities: FieldsOf(CapabilitiesSchema, Capability),
    forms: Strict({ preChat: Type.Optional(Form), offline: Type.Optional(Form) } satisfies SchemasOf<Forms>),
    consent: Strict({
      required: Type.Boolean(),
      policyUrl: OptionalText,
      policyVersion: OptionalText,
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
    limits: FieldsOf(LimitsSchema, Count),
    realtime: FieldsOf(RealtimeSchema, Count),
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
