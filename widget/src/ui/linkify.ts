type TextPart = { text: string; href?: string }

const candidate = /\bhttps?:\/\/[^\s<>"'`]+/gi
const trailing = /[.,;:!?…]+$/

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

function trimAddress(address: string): string {
  const shorter = address.replace(trailing, '')
  const count = (character: string) => shorter.split(character).length - 1
  const isOpen = shorter.endsWith(')') && count(')') > count('(')
  return isOpen ? trimAddress(shorter.slice(0, -1)) : shorter
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
