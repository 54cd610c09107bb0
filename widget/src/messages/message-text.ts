import { useLineFeeds } from '../../../contract/line-ends.ts'
import { WidgetError } from '../vocabulary/errors.ts'

/**
 * Normalizes a text for the service: line ends become LF, other control characters are removed, and
 * lone surrogates are replaced.
 *
 * @param maxLength maximum number of code points
 * @throws WidgetError `message_empty` or `message_too_long`
 */
export function messageBody(text: string, maxLength = 4_000): string {
  const body = useLineFeeds(text)
    .replace(/[^\P{Cc}\t\n]/gu, '')
    .toWellFormed()
  if (body.trim() === '') throw new WidgetError('message_empty')
  if ([...body].length > maxLength) throw new WidgetError('message_too_long')
  return body
}
