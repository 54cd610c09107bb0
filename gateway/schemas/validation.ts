import type { FastifySchemaValidationError, FastifyServerOptions, preValidationHookHandler } from 'fastify'
import { pointerToken } from '../../contract/errors.ts'
import { useLineFeedsIn } from '../../contract/line-ends.ts'
import { GatewayError, invalid } from '../errors.ts'

const PATH_MAX_LENGTH = 256

/** Validation without conversions, removals or defaults. Every broken rule is reported. */
export const ajvOptions: NonNullable<FastifyServerOptions['ajv']> = {
  customOptions: {
    coerceTypes: false,
    removeAdditional: false,
    useDefaults: false,
    allErrors: true,
    // JSON allows 1e309 (Infinity). In a viewport it is dropped, not rejected.
    strictNumbers: false,
    // Ajv would compile its meta schema at each start. Tests of the API document check the schemas.
    validateSchema: false,
    keywords: [
      {
        keyword: 'maxJsonBytes',
        schemaType: 'number',
        errors: false,
        validate: isJsonWithin,
      },
    ],
  },
}

function isJsonWithin(limit: number, data: unknown) {
  try {
    return Buffer.byteLength(JSON.stringify(data)) <= limit
  } catch {
    return false
  }
}

/** Converts errors of Ajv. The result has path and rule, never the value. */
export function validationError(errors: FastifySchemaValidationError[]): GatewayError {
  return new GatewayError('ValidationFailed', {
    issues: errors.map(({ instancePath, keyword, params }) => {
      const name = params.missingProperty ?? params.additionalProperty
      const path = name === undefined ? instancePath : `${instancePath}/${pointerToken(String(name))}`
      return { path: path.slice(0, PATH_MAX_LENGTH), rule: keyword }
    }),
  })
}

/** Parses numbers in a query. The schema rejects everything but digits. */
export const readQueryNumbers: preValidationHookHandler = (request, _reply, done) => {
  const schema = request.routeOptions.schema?.querystring as
    | { properties?: Record<string, { type?: string }> }
    | undefined
  const query = request.query as Record<string, unknown>
  for (const [name, { type }] of Object.entries(schema?.properties ?? {})) {
    const value = query[name]
    if (type === 'integer' && typeof value === 'string' && /^\d+$/.test(value)) query[name] = Number(value)
  }
  done()
}

/** A route without a body accepts no body or an empty object only. */
export const refuseUnknownBody: preValidationHookHandler = (request, _reply, done) => {
  const { body } = request
  const { schema, config } = request.routeOptions
  if (config.bodyOptional) request.body ??= {}
  if (schema?.body !== undefined || config.bodyTypes !== undefined || body === undefined) return done()
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return done(invalid('', 'type'))
  const issues = Object.keys(body).map((name) => ({
    path: `/${pointerToken(name)}`.slice(0, PATH_MAX_LENGTH),
    rule: 'additionalProperties',
  }))
  done(issues.length > 0 ? new GatewayError('ValidationFailed', { issues }) : undefined)
}

/** Converts line ends before validation. Bodies of pictures have no texts. */
export const useLineFeedsInBody: preValidationHookHandler = ({ body }, _reply, done) => {
  if (typeof body === 'object' && body !== null) useLineFeedsIn(body)
  done()
}
