export const leadFieldName = /^[A-Za-z0-9_-]{1,64}$/

/** The fields of leads that a subscription sends, and under which names. */
export interface FieldMapping {
  mappedFields: string[]
  /** A field without an entry keeps its name. */
  sentNames?: Record<string, string>
}

export const sentNameOf = (field: string, { sentNames = {} }: Pick<FieldMapping, 'sentNames'>): string =>
  (Object.hasOwn(sentNames, field) && sentNames[field]) || field

/** Returns the mapped fields under the names that the subscription sends (contract, section 5). */
export function sentFields(fields: Record<string, string>, mapping: FieldMapping): Record<string, string> {
  const mapped = mapping.mappedFields.filter((name) => Object.hasOwn(fields, name))
  return Object.fromEntries(mapped.map((name) => [sentNameOf(name, mapping), fields[name]!]))
}

export const sampleFields = (mapping: FieldMapping): Record<string, string> =>
  sentFields(
    Object.fromEntries(mapping.mappedFields.map((name) => [name, /mail/i.test(name) ? 'test@example.com' : 'Test'])),
    mapping,
  )
