import { domainToASCII, domainToUnicode } from 'node:url'
import { emailPartsOf, normalPhone } from '../../contract/contacts.ts'

/** The host's id of a visitor, an e-mail address or a phone number. */
export type ContactKind = 'subject' | 'email' | 'phone'

export interface Contact {
  kind: ContactKind
  /** The value in normal form, so that different spellings are equal. */
  value: string
}

/**
 * Returns an e-mail address in the form in which it is compared; undefined if the text is none. Case,
 * compatible Unicode forms and the two forms of an international domain do not matter. Tags and dots before
 * the @ are kept, because only the recipient's server knows their meaning.
 */
export function normalEmail(text: string): string | undefined {
  const parts = emailPartsOf(text)
  const unicode = parts && emailPartsOf(`a@${domainToUnicode(parts.domain)}`)
  const domain = unicode && domainToASCII(unicode.domain)
  return domain?.includes('.') ? `${parts!.name}@${domain}` : undefined
}

/** Returns the fields that consist of one e-mail address or phone number. */
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
