import fc from 'fast-check'

// biome-ignore lint/suspicious/noExplicitAny: JSON Schema is untyped here
type Schema = any

/** Existing values by field name. Some requests use them, so that they pass validation and find resources. */
export type KnownValues = Readonly<Record<string, readonly unknown[]>>

/**
 * Generates valid values for the subset of JSON Schema that the public API uses.
 *
 * @param name name of the field, used as key in `known`
 */
export function valuesOf(schema: Schema, known: KnownValues, name = ''): fc.Arbitrary<unknown> {
  const own = ownValues(schema, known)
  const found = known[name]
  return found === undefined ? own : fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...found) }, own)
}

function ownValues(schema: Schema, known: KnownValues): fc.Arbitrary<unknown> {
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  if (schema.const !== undefined) return fc.constant(schema.const)
  switch (schema.type) {
    case 'string':
      return texts(schema)
    case 'integer':
      return fc.integer({ min: schema.minimum ?? 0, max: Math.min(schema.maximum ?? 2 ** 31 - 1, 2 ** 31 - 1) })
    case 'number':
      return fc.double({ noNaN: true, noDefaultInfinity: true })
    case 'boolean':
      return fc.boolean()
    case 'array':
      return fc.array(valuesOf(schema.items, known), { maxLength: 3 })
    case 'object':
      return objects(schema, known)
    default:
      throw new Error(`unsupported schema ${JSON.stringify(schema)}`)
  }
}

function objects(schema: Schema, known: KnownValues): fc.Arbitrary<unknown> {
  const { properties = {}, required = [], additionalProperties } = schema
  if (typeof additionalProperties === 'object') {
    return fc.dictionary(fc.string({ minLength: 1, maxLength: 12 }), valuesOf(additionalProperties, known), {
      maxKeys: 4,
    })
  }
  const fields = Object.entries(properties).map(([name, each]) => [name, valuesOf(each, known, name)])
  return fc.record(Object.fromEntries(fields), { requiredKeys: required, noNullPrototype: true })
}

function texts({ minLength = 0, maxLength = 64, pattern }: Schema): fc.Arbitrary<string> {
  // For fields with a pattern, generated values follow the pattern but not minLength and maxLength.
  if (pattern !== undefined && !/[?]=|\\p/.test(pattern)) return fc.stringMatching(new RegExp(pattern, 'u'))
  const plain = fc.string({ minLength, maxLength: Math.min(maxLength, 64), unit: 'grapheme' })
  return pattern?.includes('://') ? plain.map((text) => `https://shop.example/${encodeURIComponent(text)}`) : plain
}
