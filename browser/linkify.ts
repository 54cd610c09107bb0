type TextPart = { text: string; href?: string }

/**
 * Patterns of addresses, and a function that returns the link of an address. A pattern is not
 * applied to links that earlier patterns have found.
 */
const patterns: [pattern: RegExp, hrefOf: (shown: string) => string | undefined][] = [
  [/\bhttps?:\/\/[^\s<>"'`]+/gi, safeHref],
  [/\bwww\.[^\s<>"'`]+/gi, (shown) => safeHref(`https://${shown}`)],
  [
    /(?<![\w.+/:-])[\w.+-]{1,64}@[a-z\d.-]{3,255}/gi,
    (shown) => (shown.includes('.', shown.indexOf('@') + 2) ? `mailto:${shown}` : undefined),
  ],
  [/\+\d[\d ()/.-]{5,18}\d/g, (shown) => `tel:${shown.replace(/[^+\d]/g, '')}`],
]
const trailing = '.,;:!?…'

/**
 * Splits a message into text and links. A link is an http or https URL that the URL parser accepts,
 * a host that begins with `www.`, a mail address or an international telephone number. Punctuation
 * at the end of an address and an unmatched closing bracket belong to the text.
 */
export function linkify(whole: string): TextPart[] {
  return patterns.reduce<TextPart[]>(
    (parts, [pattern, hrefOf]) => parts.flatMap((part) => (part.href ? part : split(part.text, pattern, hrefOf))),
    whole ? [{ text: whole }] : [],
  )
}

function split(text: string, pattern: RegExp, hrefOf: (shown: string) => string | undefined): TextPart[] {
  const parts: TextPart[] = []
  let end = 0
  for (const match of text.matchAll(pattern)) {
    const shown = trimAddress(match[0])
    const href = hrefOf(shown)
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
