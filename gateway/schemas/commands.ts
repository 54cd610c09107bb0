import { Type } from 'typebox'
import about from './about.json' with { type: 'json' }
import { Named, OneOf, Strict, Text, Time } from './fields.ts'

/** Media types of a screenshot. The core checks that the bytes match the type. */
export const SCREENSHOT_TYPES = ['image/png', 'image/jpeg', 'image/webp'] as const

/** An unknown id is answered with `CommandNotFound`. */
export const CommandParams = Strict({ commandId: Text })
export const ScreenshotParams = Strict({ requestId: Text })

export const NavigationAcknowledgementBody = Strict(
  { outcome: OneOf(['accepted', 'declined', 'completed', 'failed', 'unsupported']) },
  about.NavigationAcknowledgementBody,
)
export const NavigationAcknowledgementAnswer = Strict(
  {
    commandId: Text,
    state: Named('accepted', 'declined', 'completed', 'failed', 'unsupported'),
  },
  about.NavigationAcknowledgementAnswer,
)

export const ScreenshotAcknowledgementBody = Strict(
  { consent: OneOf(['granted', 'denied', 'unsupported']) },
  about.ScreenshotAcknowledgementBody,
)
export const ScreenshotAcknowledgementAnswer = Strict(
  {
    requestId: Text,
    state: Named('granted', 'denied', 'unsupported'),
    upload: Type.Optional(Strict({ maxBytes: Type.Integer(), contentTypes: Type.Array(Text), expiresAt: Time })),
  },
  about.ScreenshotAcknowledgementAnswer,
)

export const UploadAnswer = Strict(
  {
    requestId: Text,
    state: Named('uploaded'),
    byteLength: Type.Integer({ minimum: 1 }),
    sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  },
  about.UploadAnswer,
)
