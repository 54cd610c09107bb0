export type TextPart = { text: string; href?: string }

const candidate = /\bhttps?:\/\/[^\s<>"'`]+/gi
const trailing = /[.,;:!?…]+$/

/**
 * Cuts a message into text and links. Only `http:` and `https:` addresses that the URL parser accepts become links; the
 * visible text is always what was written. Closing punctuation belongs to the sentence, as does a bracket that was not opened
 * inside the address.
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

/** The address as it may stand in `href`; undefined for any other scheme and for addresses with a user name in them. */
export function safeHref(address: string): string | undefined {
  if (!URL.canParse(address)) return undefined
  const { protocol, username, password, href } = new URL(address)
  const isWeb = protocol === 'https:' || protocol === 'http:'
  // `https://bank.example@evil.example` shows one site and opens another.
  return isWeb && username === '' && password === '' ? href : undefined
}
