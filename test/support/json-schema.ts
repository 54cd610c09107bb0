import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'

/** Returns a function that validates a value against a JSON Schema and lists all errors. */
export function validatorOf(schema: object): (value: unknown) => string[] {
  const ajv = new Ajv2020({ allErrors: true, strict: false })
  formats.default(ajv)
  const validate = ajv.compile(schema)
  return (value) => {
    validate(value)
    return (validate.errors ?? []).map(({ instancePath, message, params }) => {
      return `${instancePath || '/'} ${message} ${JSON.stringify(params)}`
    })
  }
}
