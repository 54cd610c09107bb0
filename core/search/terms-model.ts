import { asciiDigits, normalPhone } from '../../contract/contacts.ts'

interface Term {
  term: string
  /** Place in the text, in UTF-16 code units. */
  start: number
  end: number
}

/** Longer words are cut, in entries and in queries. */
const maxTermLength = 40

/** Letters without a decomposition, and what people type instead. */
const plainLetters: Record<string, string> = {
  ø: 'o',
  ł: 'l',
  đ: 'd',
  ð: 'd',
  þ: 'th',
  æ: 'ae',
  œ: 'oe',
  ı: 'i',
  ς: 'σ',
}

const words = /[\p{L}\p{N}\p{M}]+/gu
/** Scripts without spaces between words are divided into pairs of letters. */
const unspaced = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u
const runs = new RegExp(`${unspaced.source}+|[^${unspaced.source.slice(1)}+`, 'gu')

/** Returns letters and digits only, without case, diacritics and compatibility variants. */
function foldWord(text: string) {
  if (/^[a-z0-9]*$/i.test(text)) return text.toLowerCase()
  return asciiDigits(text.normalize('NFKD'))
    .toUpperCase()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '')
    .replace(/[øłđðþæœıς]/g, (letter) => plainLetters[letter]!)
}

export function termsOf(text: string): Term[] {
  return [...text.matchAll(words)].flatMap(({ 0: word, index }) => {
    if (!unspaced.test(word)) return toTerm(word, index)
    // Divides the word where a script without spaces begins or ends.
    return [...word.matchAll(runs)].flatMap(({ 0: run, index: at }) =>
      unspaced.test(run) ? pairs(run, index + at) : toTerm(run, index + at),
    )
  })
}

/** Numbers and signs that can be a phone number. */
const phoneRuns = /\+?\(?\p{Nd}[\p{Nd}\s()./\p{Pd}]{5,40}/gu
const minPhoneDigits = 7
const maxPhoneDigits = 15
const longestCountryCode = 3

/**
 * Returns the words of a text, and each phone number as one word without leading zeros, also without its
 * country code. Sorted by place.
 */
export function indexedTermsOf(text: string): Term[] {
  const phones = [...text.matchAll(phoneRuns)].flatMap(({ 0: run, index }) => phonesIn(run, index))
  return phones.length === 0
    ? termsOf(text)
    : [...termsOf(text), ...phones].sort((one, other) => one.start - other.start)
}

/** A run may have more than a phone number, so each sequence with enough digits counts. */
function phonesIn(run: string, start: number): Term[] {
  const numbers = [...run.replace('(0)', '   ').matchAll(/\p{Nd}+/gu)].slice(0, 8)
  return numbers.flatMap((first, from) =>
    numbers.slice(from).flatMap((last, length): Term[] => {
      const given = asciiDigits(numbers.slice(from, from + length + 1).join(''))
      const digits = given.replace(/^0+/, '')
      if (digits.length < minPhoneDigits || digits.length > maxPhoneDigits) return []
      const hasCountry = given.startsWith('00') || (from === 0 && run.startsWith('+'))
      const place = { start: start + first.index, end: start + last.index + last[0].length }
      const cuts = hasCountry ? longestCountryCode : 0
      return Array.from({ length: cuts + 1 }, (_, cut) => ({ term: digits.slice(cut), ...place }))
    }),
  )
}

function toTerm(word: string, start: number): Term[] {
  const folded = foldWord(word)
  const term = folded.length <= maxTermLength ? folded : [...folded].slice(0, maxTermLength).join('')
  return term === '' ? [] : [{ term, start, end: start + word.length }]
}

/** Returns each pair of adjacent letters, and the last letter alone. */
function pairs(run: string, start: number): Term[] {
  const letters = [...run]
  let at = start
  return letters.flatMap((letter, index) => {
    const found = toTerm(letter + (letters[index + 1] ?? ''), at)
    at += letter.length
    return found
  })
}

/** A prefix also finds longer words. */
export interface SearchTerm {
  term: string
  isPrefix: boolean
}

/**
 * Divides a query into terms. The last word is a prefix unless a space follows, because the person may
 * still be typing. In a script without spaces, a last letter that the pair before contains is no term. A
 * phone number is one term, however it is written.
 */
export function searchTermsOf(query: string): SearchTerm[] {
  const phone = normalPhone(query)?.replace(/^\+0*/, '') ?? ''
  if (phone.length >= minPhoneDigits) return [{ term: phone, isPrefix: !/\s$/.test(query) }]
  const terms = termsOf(query)
  const isTyping = terms.length > 0 && terms.at(-1)!.end === query.length
  const wanted = terms.filter(({ term, start }, index) => {
    const before = terms[index - 1]
    return !(before && before.end > start && before.term.endsWith(term))
  })
  const found = wanted.map(({ term }, index) => ({
    term,
    isPrefix: (isTyping && index === wanted.length - 1) || unspaced.test(term),
  }))
  return [...new Map(found.map((each) => [each.term, each])).values()]
}

const isMatch = ({ term, isPrefix }: SearchTerm, found: string) => (isPrefix ? found.startsWith(term) : found === term)

export function hasTerms(text: string, wanted: SearchTerm[]): boolean {
  const terms = indexedTermsOf(text)
  return wanted.every((each) => terms.some(({ term }) => isMatch(each, term)))
}

const snippetLength = 160
const leadLength = 40

/** Returns a part of the text, and its matches in UTF-16 code units, without overlaps. */
export function snippetOf(text: string, wanted: SearchTerm[]) {
  const matches = indexedTermsOf(text).filter(({ term }) => wanted.some((each) => isMatch(each, term)))
  const first = matches[0]?.start ?? 0
  const from = wordBoundary(text, Math.max(0, text.length <= snippetLength ? 0 : first - leadLength))
  const to = letterBoundary(text, Math.min(text.length, from + snippetLength))
  const [before, after] = [from > 0 ? '…' : '', to < text.length ? '…' : '']
  const highlights: { start: number; end: number }[] = []
  for (const match of matches) {
    if (match.start < from || match.end > to) continue
    const [start, end] = [match.start - from + before.length, match.end - from + before.length]
    const last = highlights.at(-1)
    if (last && start <= last.end) last.end = Math.max(last.end, end)
    else highlights.push({ start, end })
  }
  return { text: before + text.slice(from, to) + after, highlights }
}

/** Moves a position to the next word if that starts within `leadLength` code units. */
function wordBoundary(text: string, at: number) {
  if (at === 0) return 0
  const space = text.slice(at, at + leadLength).search(/\s/u)
  return letterBoundary(text, space < 0 ? at : at + space + 1)
}

/** Moves a position out of a surrogate pair. */
function letterBoundary(text: string, at: number) {
  const unit = text.charCodeAt(at)
  return unit >= 0xdc00 && unit <= 0xdfff ? at + 1 : at
}
