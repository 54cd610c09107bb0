import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'

/** Holds a value against a JSON Schema: what is wrong with it, one sentence each; empty where it is right. */
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
