import { domainToASCII } from 'node:url'

/** Kind of a suppression entry: the host's id of a visitor, an e-mail address or a phone number. */
export type ContactKind = 'subject' | 'email' | 'phone'

export interface Contact {
  kind: ContactKind
  /** The value in normal form, so that different spellings of one contact are equal. */
  value: string
}

const emailParts = /^([^\s@]{1,64})@([^\s@]{1,255})$/
const separators = /[\s()./\p{Pd}\u2212]/gu
const phoneDigits = /^\d{3,15}$/

/**
 * Returns an e-mail address in normal form, or undefined if the text is not an address. Upper and
 * lower case, compatible Unicode forms, and the two forms of an international domain have the same
 * normal form. Tags and dots before the @ are kept, because only the recipient's server knows their
 * meaning.
 */
export function normalEmail(text: string): string | undefined {
  const [, name, host] = emailParts.exec(folded(text.trim())) ?? []
  if (name === undefined || host === undefined) return undefined
  const domain = domainToASCII(host.replace(/\.$/, ''))
  return domain.includes('.') ? `${name}@${domain}` : undefined
}

/**
 * Returns a phone number as `+` and digits, or undefined if the text is not a number. `00` is read
 * as `+`, and `(0)` after an international prefix is dropped. A number without a country code
 * differs from the same number with one, because its country is not known.
 */
export function normalPhone(text: string): string | undefined {
  const given = text
    .normalize('NFKC')
    .trim()
    .replace(/\p{Nd}/gu, asciiDigit)
  const isInternational = /^(\+|00)/.test(given)
  const joined = (isInternational ? given.replace('(0)', '') : given).replace(separators, '')
  const digits = joined.replace(/^(\+|00)/, '')
  return phoneDigits.test(digits) ? `+${digits}` : undefined
}

/** Returns the contacts of a lead: each field that consists of one address or one number. */
export function contactsIn(fields: Record<string, string>): Contact[] {
  return Object.values(fields).flatMap((text): Contact[] => {
    if (text.length > 400) return []
    const email = normalEmail(text)
    const phone = normalPhone(text)
    return [
      ...(email === undefined ? [] : [{ kind: 'email' as const, value: email }]),
      ...(phone === undefined ? [] : [{ kind: 'phone' as const, value: phone }]),
    ]
  })
}

/**
 * Folds case. Converts to upper case first, so that `ß` equals `SS` and both forms of a Greek sigma
 * are equal.
 */
function folded(text: string): string {
  return text.normalize('NFKC').toUpperCase().toLowerCase().normalize('NFKC')
}

/** Returns the ASCII digit for a decimal digit of any script. */
function asciiDigit(digit: string): string {
  const code = digit.codePointAt(0)!
  // Unicode has the digits 0 to 9 of each script at consecutive code points. After NFKC, the digits
  // of two scripts are never adjacent.
  let zero = code
  while (code - zero < 9 && /\p{Nd}/u.test(String.fromCodePoint(zero - 1))) zero -= 1
  return String(code - zero)
}
