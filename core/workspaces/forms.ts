import { storedValue } from '../../contract/contacts.ts'
import { pointerToken } from '../../contract/errors.ts'
import { leadFieldName } from '../../contract/lead-fields.ts'
import { field, integer, issueIf, oneOf, text } from '../rules.ts'
import type { Capabilities, FormField, FormKind } from './model.ts'

/** The capability that a form requires, and the source of its leads. */
export const formKinds: Record<FormKind, { capability: keyof Capabilities; source: string }> = {
  preChat: { capability: 'preChatForm', source: 'pre-chat-form' },
  offline: { capability: 'offlineForm', source: 'offline-form' },
}

const maxFields = 20
const maxLength = 4000
const lineBreak = /[\n\t]/

export function formDefinitionIssues(path: string, fields: FormField[]) {
  if (fields.length > maxFields) return [{ path, rule: 'maxItems' }]
  const names = fields.map(({ name }) => name)
  return fields.flatMap(({ name, label, type, maxLength: longest }, index) => [
    field(`${path}/${index}/name`, name, (value) =>
      !leadFieldName.test(value) ? 'pattern' : names.indexOf(value) === index ? undefined : 'uniqueItems',
    ),
    field(`${path}/${index}/label`, label, text(1, 128)),
    field(`${path}/${index}/type`, type, oneOf<FormField['type']>('text', 'email', 'tel', 'textarea')),
    field(`${path}/${index}/maxLength`, longest, integer(1, maxLength)),
  ])
}

export function formIssues(form: FormField[], values: Record<string, string>) {
  const known = new Set(form.map(({ name }) => name))
  return [
    ...Object.keys(values)
      .filter((name) => !known.has(name))
      .map((name) => ({ path: `/fields/${pointerToken(name.slice(0, 200))}`, rule: 'additionalProperties' })),
    ...form.map((defined) => {
      const value = Object.hasOwn(values, defined.name) ? values[defined.name] : undefined
      const rule = brokenRule(defined, value)
      return issueIf(rule, `/fields/${defined.name}`, rule!)
    }),
  ]
}

export function storedFields(form: FormField[], values: Record<string, string>): Record<string, string> {
  const typeOf = new Map(form.map(({ name, type }) => [name, type]))
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, storedValue(typeOf.get(name) ?? 'text', value) ?? value]),
  )
}

function brokenRule({ type, required, maxLength: longest }: FormField, value: string | undefined): string | undefined {
  if (value === undefined || value.trim() === '') {
    if (required) return value === undefined ? 'required' : 'minLength'
    if (value === undefined || value === '') return undefined
  }
  const broken = text(0, longest)(value)
  if (broken !== undefined) return broken
  if (type !== 'textarea' && lineBreak.test(value)) return 'pattern'
  if (value.trim() === '') return undefined
  return storedValue(type, value) === undefined ? 'format' : undefined
}
