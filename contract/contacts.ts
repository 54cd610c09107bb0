/** Excludes quotes and brackets, because they surround addresses in texts and files. */
const emailParts = /^([^\s@"(),:;<>[\]\\]{1,64})@([^\s@"(),:;<>[\]\\]{1,255})$/
const formEmail = /^[^\s@]{1,64}@[^\s@.]+(\.[^\s@.]+)+$/
/** Signs that people write in a phone number. */
const separators = /[\s()[\]./\p{Pd}\u2212·•・⁄∕~]/gu
/** The label before a number that is copied from a page or a card. */
const phoneLabel = /^(tel\.?:|tel\.|\p{So})\s*/iu
const phoneDigits = /^\d{3,15}$/

/** Invisible characters of pasted text, for example zero-width spaces. */
const invisible = /\p{Default_Ignorable_Code_Point}/gu
/** To be replaced by `$1`: keeps joiners between letters that are not ASCII. A domain without them is another one. */
const strayInvisible = /([^\p{ASCII}\p{N}][\u200c\u200d](?=[^\p{ASCII}\p{N}]))|\p{Default_Ignorable_Code_Point}/gu

/**
 * Returns undefined if the text is no e-mail address. Mail goes to `address`, which is as the person wrote it.
 * `name` and `domain` are for comparisons: case, compatible Unicode forms and invisible characters make no
 * difference, and two mailboxes can share them. The domain has a dot and does not end with one.
 */
export function emailPartsOf(text: string): { name: string; domain: string; address: string } | undefined {
  const address = withoutVariants(text).replace(/\.$/, '')
  const [, name, domain = ''] = emailParts.exec(folded(address)) ?? []
  return name !== undefined && domain.includes('.') ? { name, domain, address } : undefined
}

/**
 * Returns `+` and digits, or undefined if the text is no number. `00` is read as `+`, and `(0)` after an
 * international prefix is dropped. A number without a country code differs from the same number with one.
 */
export function normalPhone(text: string): string | undefined {
  return readPhone(text)?.normal
}

/**
 * Returns the value of a form's field as it is stored, or undefined if it is no address or number. A number
 * with a country code is stored as E.164.
 */
export function storedValue(type: string, value: string): string | undefined {
  if (type === 'tel') return readPhone(value)?.stored
  if (type !== 'email') return value
  const plain = withoutVariants(value)
  return formEmail.test(plain) && plain.length <= 254 ? plain : undefined
}

function readPhone(text: string) {
  const given = asciiDigits(withoutVariants(text)).replace(phoneLabel, '')
  const isInternational = /^[\s([]*(\+|00)/.test(given)
  const joined = (isInternational ? given.replace('(0)', '') : given).replace(separators, '')
  const digits = joined.replace(/^(\+|00)/, '')
  if (!phoneDigits.test(digits)) return undefined
  const normal = `+${digits}`
  return { normal, stored: isInternational && !digits.startsWith('0') ? normal : given }
}

/** Removes invisible characters, and replaces variants such as fullwidth letters and dots. */
const withoutVariants = (text: string) =>
  text.replace(strayInvisible, '$1').normalize('NFKC').replaceAll('\u3002', '.').trim()

/** Replaces the decimal digits of any script. The text must be in the form NFKC. */
export const asciiDigits = (text: string): string => text.replace(/\p{Nd}/gu, asciiDigit)

/** Converts to upper case first, so that `ß` equals `SS` and both forms of a Greek sigma are equal. */
function folded(text: string) {
  return text.replace(invisible, '').toUpperCase().toLowerCase().normalize('NFKC')
}

function asciiDigit(digit: string) {
  const code = digit.codePointAt(0)!
  // Unicode has the digits of each script at consecutive code points, and after NFKC those of two scripts
  // are never adjacent.
  let zero = code
  while (code - zero < 9 && /\p{Nd}/u.test(String.fromCodePoint(zero - 1))) zero -= 1
  return String(code - zero)
}
