import { WidgetError } from './errors.ts'

/**
 * The text in the form that the service accepts: CRLF and CR become LF, other control characters are removed, and lone
 * surrogates are replaced.
 *
 * @param maxLength in Unicode code points, as the service counts them
 * @throws WidgetError `message_empty` or `message_too_long`
 */
export function messageBody(text: string, maxLength = 4_000): string {
  const body = text
    .replace(/\r\n?/g, '\n')
    .replace(/[^\P{Cc}\t\n]/gu, '')
    .toWellFormed()
  if (body.trim() === '') throw new WidgetError('message_empty')
  if ([...body].length > maxLength) throw new WidgetError('message_too_long')
  return body
}
