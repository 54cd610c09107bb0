import { type Static, Type } from 'typebox'
import { Identifier, OneOf, Strict } from './fields.ts'

export const ConfigParams = Strict({ publicSiteKey: { ...Identifier, examples: ['pk_demo'] } })

const Count = Type.Integer({ minimum: 0 })

const Form = Strict({
  fields: Type.Array(
    Strict({
      name: Type.String(),
      label: Type.String(),
      type: OneOf(['text', 'email', 'tel', 'textarea']),
      required: Type.Boolean(),
      maxLength: Count,
    }),
  ),
})
export type FormAnswer = Static<typeof Form>

/** Safe public bootstrap configuration of an installation. */
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
    }),
    capabilities: Strict({
      identity: Type.Boolean(),
      typing: Type.Boolean(),
      pageContext: Type.Boolean(),
      navigation: Type.Boolean(),
      screenshots: Type.Boolean(),
      preChatForm: Type.Boolean(),
      offlineForm: Type.Boolean(),
      messageRetryRoute: Type.Boolean(),
    }),
    forms: Strict({ preChat: Type.Optional(Form), offline: Type.Optional(Form) }),
    consent: Strict({ required: Type.Boolean(), policyUrl: Type.Optional(Type.String()) }),
    availability: Strict({ online: Type.Boolean() }),
    limits: Strict({
      bodyMaxLength: Count,
      pageContextMaxBytes: Count,
      historyPageMax: Count,
      screenshotMaxBytes: Count,
      outboxMax: Count,
    }),
    realtime: Strict({ heartbeatSeconds: Count, reconnectMinMs: Count, reconnectMaxMs: Count }),
  },
  {
    description: 'The public configuration of the installation.',
    examples: [
      {
        contract: 'service.widget.public-api',
        contractVersion: '1.0',
        publicSiteKey: 'pk_demo',
        locale: { default: 'en', supported: ['en', 'de', 'es', 'fr', 'ar', 'ja'] },
        appearance: { title: 'Shop', greeting: 'Hello', accentColor: '#2f6f4f', position: 'right' },
        capabilities: {
          identity: true,
          typing: true,
          pageContext: true,
          navigation: false,
          screenshots: false,
          preChatForm: true,
          offlineForm: false,
          messageRetryRoute: false,
        },
        forms: {
          preChat: {
            fields: [{ name: 'email', label: 'Your e-mail address', type: 'email', required: true, maxLength: 254 }],
          },
        },
        consent: { required: false },
        availability: { online: true },
        limits: {
          bodyMaxLength: 4000,
          pageContextMaxBytes: 4096,
          historyPageMax: 100,
          screenshotMaxBytes: 5242880,
          outboxMax: 50,
        },
        realtime: { heartbeatSeconds: 15, reconnectMinMs: 500, reconnectMaxMs: 20000 },
      },
    ],
  },
)
export type WidgetConfigAnswer = Static<typeof WidgetConfigAnswer>
