export interface TextPart {
  text: string
  /** An http or https URL; undefined for plain text. */
  href?: string
}

const address = /https?:\/\/[^\s<>"'`]+/gi
const closing = /[.,;:!?)\]}»”’]+$/

/** Splits a text into plain text and http(s) links. */
export function linkParts(text: string): TextPart[] {
  const parts: TextPart[] = []
  let done = 0
  for (const match of text.matchAll(address)) {
    const shown = match[0].replace(closing, '')
    const href = safeHref(shown)
    if (href === undefined) continue
    if (match.index > done) parts.push({ text: text.slice(done, match.index) })
    parts.push({ text: shown, href })
    done = match.index + shown.length
  }
  if (done < text.length) parts.push({ text: text.slice(done) })
  return parts
}

/** Returns the normalized URL, or undefined if it is not http(s). */
export function safeHref(text: string | undefined): string | undefined {
  const url = text === undefined ? null : URL.parse(text)
  return url && /^https?:$/.test(url.protocol) ? url.href : undefined
}
