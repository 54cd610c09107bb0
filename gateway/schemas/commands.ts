import { Type } from 'typebox'
import { OneOf, Strict, Time } from './fields.ts'

/** Media types of a screenshot. The core holds the bytes against them. */
export const SCREENSHOT_TYPES = ['image/png', 'image/jpeg', 'image/webp'] as const

/** Any text: what names no command of the session is not found. */
export const CommandParams = Strict({ commandId: Type.String() })
export const ScreenshotParams = Strict({ requestId: Type.String() })

export const NavigationAcknowledgementBody = Strict({
  outcome: OneOf(['accepted', 'declined', 'completed', 'failed', 'unsupported']),
})
export const NavigationAcknowledgementAnswer = Strict({ commandId: Type.String(), state: Type.String() })

export const ScreenshotAcknowledgementBody = Strict({ consent: OneOf(['granted', 'denied', 'unsupported']) })
export const ScreenshotAcknowledgementAnswer = Strict({
  requestId: Type.String(),
  state: Type.String(),
  upload: Type.Optional(Strict({ maxBytes: Type.Integer(), contentTypes: Type.Array(Type.String()), expiresAt: Time })),
})

export const UploadAnswer = Strict({
  requestId: Type.String(),
  state: Type.String(),
  byteLength: Type.Integer(),
  sha256: Type.String(),
})
