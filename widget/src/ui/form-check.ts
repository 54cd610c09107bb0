import type { FormField } from '../types.ts'

const email = /^[^\s@]{1,64}@[^\s@.]+(\.[^\s@.]+)+$/
const tel = /^\+?[0-9 ()/.-]{3,}$/

/** The rule that a value breaks, named as in the service's `issues`. Undefined if the value is valid. */
export function brokenRule({ type, required, maxLength }: FormField, value: string): string | undefined {
  if (value.trim() === '') return required ? 'required' : undefined
  if ([...value].length > maxLength) return 'maxLength'
  if (type === 'email') return email.test(value) && value.length <= 254 ? undefined : 'format'
  return type === 'tel' && !tel.test(value) ? 'format' : undefined
}

/** The `autocomplete` value of a field (WCAG 1.3.5). */
export function autocompleteOf({ type, name }: FormField): string {
  if (type === 'email' || type === 'tel') return type
  const purposes: Record<string, string> = {
    name: 'name',
    fullname: 'name',
    firstname: 'given-name',
    givenname: 'given-name',
    lastname: 'family-name',
    familyname: 'family-name',
    company: 'organization',
    organization: 'organization',
    organisation: 'organization',
    country: 'country-name',
    city: 'address-level2',
    website: 'url',
  }
  return (type === 'text' && purposes[name.toLowerCase().replace(/[^a-z]/g, '')]) || 'off'
}
