type TextPart = { text: string; href?: string }

const candidate = /\bhttps?:\/\/[^\s<>"'`]+/gi
const trailing = '.,;:!?…'

/**
 * Splits a message into text and links. A link is an http or https URL that the URL parser accepts.
 * Punctuation at the end of a URL and an unmatched closing bracket belong to the text.
 */
export function linkify(text: string): TextPart[] {
  const parts: TextPart[] = []
  let end = 0
  for (const match of text.matchAll(candidate)) {
    const shown = trimAddress(match[0])
    const href = safeHref(shown)
    if (!href) continue
    if (match.index > end) parts.push({ text: text.slice(end, match.index) })
    parts.push({ text: shown, href })
    end = match.index + shown.length
  }
  if (end < text.length) parts.push({ text: text.slice(end) })
  return parts
}

/** Cuts punctuation and unmatched closing brackets off the end. Reads each character once. */
function trimAddress(address: string): string {
  let end = address.length
  let unmatched = address.split(')').length - address.split('(').length
  for (; end > 0; end -= 1) {
    const last = address[end - 1]!
    if (last === ')' && unmatched > 0) unmatched -= 1
    else if (!trailing.includes(last)) break
  }
  return address.slice(0, end)
}

/**
 * Returns the URL for the attribute `href`. Returns undefined if the URL is invalid, is not http or
 * https, or has a user name or password.
 */
export function safeHref(address: string): string | undefined {
  if (!URL.canParse(address)) return undefined
  const { protocol, username, password, href } = new URL(address)
  const isWeb = protocol === 'https:' || protocol === 'http:'
  // Reject user names: `https://bank.example@evil.example` looks like `bank.example`, but opens
  // `evil.example`.
  return isWeb && username === '' && password === '' ? href : undefined
}
