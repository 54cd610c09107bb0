import { isKnownCommand, isKnownSecurity, WidgetError } from '../vocabulary/errors.ts'
import type { Emitter } from '../vocabulary/events.ts'
import type { StreamEvent } from '../vocabulary/types.ts'

/**
 * Applies the compatibility policy to an event whose type this package does not know. An unknown
 * security event stops sending.
 */
export function surfaceUnknown(
  { type, category }: StreamEvent,
  { emit, hold }: { emit: Emitter['emit']; hold(reason: WidgetError): void },
) {
  if (category === 'security' && !isKnownSecurity(type)) {
    const failure = new WidgetError('unsupported_security_event')
    emit('error', failure.detail)
    hold(failure)
  } else if (category === 'command' && !isKnownCommand(type)) {
    emit('error', { code: 'unsupported_command', recoverable: true })
  }
}
