import { storedValue } from '../../../../contract/contacts.ts'
import type { FormField } from '../../vocabulary/types.ts'

/** Returns the rule that a value violates, named as in the `issues` of the service. */
export function brokenRule({ type, required, maxLength }: FormField, value: string): string | undefined {
  if (value.trim() === '') return required ? 'required' : undefined
  if ([...value].length > maxLength) return 'maxLength'
  return storedValue(type, value) === undefined ? 'format' : undefined
}

/** Returns the value of a field's `autocomplete` attribute (WCAG 1.3.5). */
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
