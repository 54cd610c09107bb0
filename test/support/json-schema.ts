import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'

// Shared, because each instance compiles the meta-schema, which takes 20 ms.
const ajv = new Ajv2020({ allErrors: true, strict: false })
formats.default(ajv)

/** Returns a function that validates a value against a JSON Schema and lists all errors. */
export function validatorOf(schema: object): (value: unknown) => string[] {
  const validate = ajv.compile(schema)
  return (value) => {
    validate(value)
    return (validate.errors ?? []).map(({ instancePath, message, params }) => {
      return `${instancePath || '/'} ${message} ${JSON.stringify(params)}`
    })
  }
}
