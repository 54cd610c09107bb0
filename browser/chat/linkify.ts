type TextPart = { text: string; href?: string }

/** A letter of a script with spaces between words. In other scripts, an address can follow a word directly. */
const spacedLetter =
  '(?![\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\p{sc=Thai}\\p{sc=Lao}\\p{sc=Khmer}\\p{sc=Myanmar}])[\\p{L}\\p{M}]'

/** Matches a character of a URL. Punctuation of other scripts that ends a part of a sentence does not match. */
const sign = '(?![\\s<>"\'`])(?:[!-~]|’|(?![\\p{Terminal_Punctuation}\\p{Ps}\\p{Pe}\\p{Pi}\\p{Pf}])[^\\0-\\x7f])'
/** Matches the characters of a URL, and pairs of brackets of other scripts. */
const signs = `(?:${sign}|(?![!-~])[\\p{Ps}\\p{Pi}](?:${sign})*(?![!-~])[\\p{Pe}\\p{Pf}])+`
/** A sign that the URL parser reads as the first dot of the host. */
const foreignDot = '[^\\s/.:]{0,63}[。．｡]'

interface AddressKind {
  /** Text without which the pattern matches nothing. */
  mark: string
  pattern: RegExp
  /** Returns the part of a match that is the address. */
  cut(found: string): string
  /** Returns the link of an address; undefined if it is none. */
  hrefOf(shown: string): string | undefined
}

/** The kinds of addresses. A pattern is not applied to links that earlier patterns have found. */
const kinds: AddressKind[] = [
  { mark: '//', pattern: new RegExp(`\\bhttps?://(?!${foreignDot})${signs}`, 'giu'), cut: cutUrl, hrefOf: safeHref },
  {
    mark: '.',
    pattern: new RegExp(`\\bwww\\.(?!${foreignDot})${signs}`, 'giu'),
    cut: cutUrl,
    hrefOf: (shown) => safeHref(`https://${shown}`),
  },
  {
    mark: '@',
    pattern: new RegExp(`(?<![\\w.+/:-]|${spacedLetter})[\\w.+-]{1,64}@[\\p{L}\\p{M}\\p{N}.-]{3,255}`, 'gu'),
    cut: (found) => cutHost(found, found.indexOf('@') + 1),
    hrefOf: (shown) => (shown.includes('.', shown.indexOf('@') + 2) ? `mailto:${shown}` : undefined),
  },
  {
    mark: '+',
    pattern: /\+\d[\d ()/.-]{5,18}\d/g,
    cut: (found) => found,
    hrefOf: (shown) => `tel:${shown.replace(/[^+\d]/g, '')}`,
  },
]

const host = /[\p{L}\p{M}\p{N}._-]*/uy
const opening = /[\p{Ps}\p{Pi}]/u
/** Excludes the apostrophe, which Unicode counts as a closing quotation mark. */
const closing = /(?!’)[\p{Pe}\p{Pf}]/u
/** Matches characters that are not part of an address if they stand at its end. */
const ending = /(?![#%&*+/=@_~|-])[\p{P}\p{Sm}\p{Cf}]/u

/**
 * Splits a message into text and links. A link is an http or https URL that the URL parser accepts,
 * a host that begins with `www.`, a mail address or an international telephone number. Punctuation
 * of any script at the end of an address belongs to the text, and so does what follows it.
 */
export function linkify(whole: string): TextPart[] {
  return kinds.reduce<TextPart[]>(
    (parts, kind) =>
      parts.flatMap((part) => (part.href || !part.text.includes(kind.mark) ? part : split(part.text, kind))),
    whole ? [{ text: whole }] : [],
  )
}

function split(text: string, { pattern, cut, hrefOf }: AddressKind): TextPart[] {
  const parts: TextPart[] = []
  let end = 0
  pattern.lastIndex = 0
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
    const shown = cut(match[0])
    const href = hrefOf(shown)
    if (!href) continue
    if (match.index > end) parts.push({ text: text.slice(end, match.index) })
    parts.push({ text: shown, href })
    // Another address can follow without a space.
    pattern.lastIndex = end = match.index + shown.length
  }
  if (end < text.length) parts.push({ text: text.slice(end) })
  return parts
}

/**
 * Cuts off what is not part of the URL. The URL parser reads some signs of other scripts as dots and
 * slashes, so the host ends at the first sign that cannot be part of a host.
 */
function cutUrl(found: string) {
  const start = /^(https?:\/\/)?/i.exec(found)![0].length
  const authority = /[^/\\?#]*/.exec(found.slice(start))![0]
  // Neither this URL nor the part before the `@` is a link, see `safeHref`.
  if (authority.includes('@')) return found
  const upToHost = cutHost(found, start)
  const port = /^:\d{1,5}(?=[/\\?#]|$)/.exec(found.slice(upToHost.length))?.[0] ?? ''
  const isWhole = upToHost.length + port.length === start + authority.length
  if (isWhole || authority.startsWith('[')) return cutEnd(found)
  // The URL parser ignores invisible signs and decodes percent signs, so a host can go on there.
  const goesOn = /^(%|\p{Cf}+[^\s\p{P}])/u.test(found.slice(upToHost.length))
  return goesOn || !upToHost.includes('.') ? '' : upToHost + port
}

/** Cuts off what follows the host. A top-level domain in ASCII ends where another script begins. */
function cutHost(found: string, start: number) {
  host.lastIndex = start
  const letters = host.exec(found)![0]
  // The URL parser replaces variants, for example fullwidth letters.
  const variant = /[^\0-\x7f]/.test(letters) ? [...letters].find((letter) => letter.normalize('NFKC') !== letter) : ''
  const whole = variant ? letters.slice(0, letters.indexOf(variant)) : letters
  const dot = whole.lastIndexOf('.')
  const top = /^[a-z\d-]+(?=[^\0-\x7f])/i.exec(whole.slice(dot + 1))?.[0]
  const kept = dot > 0 && top ? whole.slice(0, dot + 1) + top : whole
  return cutEnd(found.slice(0, start) + kept)
}

/** Cuts punctuation off the end, but not a closing bracket that the address opens. */
function cutEnd(address: string) {
  if (!ending.test(address.slice(-2))) return address
  const left = [...address]
  const count = (kind: RegExp) => left.filter((each) => kind.test(each)).length
  let unmatched = count(closing) - count(opening)
  for (let last = left.at(-1); last && ending.test(last); last = left.at(-1)) {
    if (closing.test(last) && unmatched-- <= 0) break
    if (opening.test(last)) unmatched += 1
    left.pop()
  }
  return left.join('')
}

/** Returns the URL for `href`; undefined unless it is http or https without a user name or password. */
export function safeHref(address: string) {
  if (!URL.canParse(address)) return undefined
  const { protocol, username, password, href } = new URL(address)
  const isWeb = protocol === 'https:' || protocol === 'http:'
  // `https://bank.example@evil.example` looks like `bank.example`, but opens `evil.example`.
  return isWeb && username === '' && password === '' ? href : undefined
}
