import { Type } from 'typebox'
import { Named, OneOf, Strict, Time } from './fields.ts'

/** Media types of a screenshot. The core checks that the bytes of an image match its type. */
export const SCREENSHOT_TYPES = ['image/png', 'image/jpeg', 'image/webp'] as const

/** Accepts any text: an unknown id is answered with `CommandNotFound`. */
export const CommandParams = Strict({ commandId: Type.String() })
export const ScreenshotParams = Strict({ requestId: Type.String() })

export const NavigationAcknowledgementBody = Strict(
  { outcome: OneOf(['accepted', 'declined', 'completed', 'failed', 'unsupported']) },
  { examples: [{ outcome: 'accepted' }] },
)
export const NavigationAcknowledgementAnswer = Strict(
  {
    commandId: Type.String(),
    state: Named('accepted', 'declined', 'completed', 'failed', 'unsupported'),
  },
  { description: 'The state of the command.', examples: [{ commandId: 'cmd_9x2m4b', state: 'accepted' }] },
)

export const ScreenshotAcknowledgementBody = Strict(
  { consent: OneOf(['granted', 'denied', 'unsupported']) },
  { examples: [{ consent: 'granted' }] },
)
export const ScreenshotAcknowledgementAnswer = Strict(
  {
    requestId: Type.String(),
    state: Named('granted', 'denied', 'unsupported'),
    upload: Type.Optional(
      Strict({ maxBytes: Type.Integer(), contentTypes: Type.Array(Type.String()), expiresAt: Time }),
    ),
  },
  {
    description: 'The state of the request and, after consent, the terms of the upload.',
    examples: [
      {
        requestId: 'scr_5h8w1z',
        state: 'granted',
        upload: { maxBytes: 5242880, contentTypes: [...SCREENSHOT_TYPES], expiresAt: '2026-01-02T03:06:05.678Z' },
      },
    ],
  },
)

export const UploadAnswer = Strict(
  {
    requestId: Type.String(),
    state: Named('uploaded'),
    byteLength: Type.Integer({ minimum: 1 }),
    sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  },
  {
    description: 'The screenshot is stored durably.',
    examples: [
      {
        requestId: 'scr_5h8w1z',
        state: 'uploaded',
        byteLength: 48213,
        sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
      },
    ],
  },
)
