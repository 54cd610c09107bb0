import swagger, { type FastifyDynamicSwaggerOptions, type SwaggerTransform } from '@fastify/swagger'
import type { FastifyContextConfig, FastifyInstance } from 'fastify'
import { type PublicError, publicErrors } from '../../contract/errors.ts'
import type { EventName } from '../../contract/event-categories.ts'
import { CONTRACT, CONTRACT_VERSION } from '../../contract/public-api.ts'
import { eventDefinitions, eventSchema } from '../schemas/events.ts'
import { Envelope, portablePatterns } from '../schemas/fields.ts'
import texts from './document.json' with { type: 'json' }
import { streamAnswer } from './event-stream-description.ts'
import { errorsOf, headersOfAnswer, headersOfFailure, parametersOf } from './route-description.ts'
import { webhookPaths, webhookSchemas } from './webhook-description.ts'

type Json = Record<string, unknown>

interface Operation extends Json {
  parameters?: unknown[]
  responses: Record<string, Json>
  requestBody?: Json
  security?: unknown[]
  'x-route'?: FastifyContextConfig
}

interface Document extends Json {
  paths: Record<string, Record<string, Operation>>
  components: Record<string, Json>
}

/**
 * Describes the routes below these prefixes that are registered after this call: `app.swagger()` returns
 * the OpenAPI 3.2 document, with the schemas that validate and serialise. Headers and errors come from each
 * route's checks.
 */
export async function describeApi(app: FastifyInstance, ...prefixes: string[]) {
  const transform: SwaggerTransform = ({ schema, url, route }) => {
    if (!prefixes.some((prefix) => url.startsWith(`${prefix}/`))) return { schema: { ...schema, hide: true }, url }
    const { response, ...rest } = schema ?? {}
    // Keep only the route's own answers here. `finish` adds the failures.
    const own = Object.entries(response ?? {}).filter(([status]) => /^\d+$/.test(status))
    const described = { ...rest, response: Object.fromEntries(own), 'x-route': route.config ?? {} }
    return { schema: described, url }
  }
  const options: FastifyDynamicSwaggerOptions = {
    openapi: {
      openapi: '3.1.1',
      info: {
        ...texts.info,
        version: CONTRACT_VERSION,
        description: texts.info.description.replace('{contract}', CONTRACT).replace('{version}', CONTRACT_VERSION),
      },
      servers: [{ url: '/', description: 'This gateway' }],
      ...(texts.head as object),
    },
    transform,
    transformObject: (document) => finish('openapiObject' in document ? document.openapiObject : {}) as never,
  }
  await app.register(swagger, options)
}

/** Adds what is derived from the checks of each route. */
function finish(generated: object): object {
  const document = copyOf(generated) as Document
  for (const operations of Object.values(document.paths)) {
    for (const operation of Object.values(operations)) finishOperation(operation)
  }
  document.components = {
    ...document.components,
    schemas: {
      ErrorEnvelope: { ...Envelope, description: 'The body of every failure.' },
      ...eventSchemas(),
      ...openForNewFields(webhookSchemas()),
    },
  }
  // The plugin knows 3.1 only.
  document.openapi = '3.2.0'
  document.webhooks = webhookPaths()
  return copyOf(document)
}

function finishOperation(operation: Operation) {
  const config = operation['x-route'] ?? {}
  delete operation['x-route']
  operation.parameters = [...(operation.parameters ?? []), ...parametersOf(config)]
  operation.security = config.operator ? [{ workspaceSession: [] }] : config.scoped ? [{ accessGrant: [] }] : []
  if (config.bodyTypes) operation.requestBody = rawBody(config)
  if (config.bodyOptional) delete operation.requestBody?.required
  if (config.stream) operation.responses = { 200: streamAnswer() }
  operation.responses = openForNewFields(operation.responses)
  for (const [status, answer] of Object.entries(operation.responses)) {
    if (status === '304') answer.description = 'The cached answer is current.'
    answer.headers = headersOfAnswer(config, Number(status))
  }
  const codes = errorsOf(config, operation.requestBody !== undefined)
  const byStatus = Map.groupBy(
    publicErrors.filter(({ code }) => codes.has(code)),
    ({ httpStatus }) => httpStatus,
  )
  for (const [status, errors] of byStatus) operation.responses[status] = failure(status, errors)
}

function rawBody({ bodyTypes = [], bodyMaxBytes }: FastifyContextConfig): Json {
  const bytes = { schema: { type: 'string', format: 'binary' } }
  return {
    required: true,
    description: `Raw bytes, not compressed${bodyMaxBytes === undefined ? '' : `: at most ${bodyMaxBytes}`}.`,
    content: Object.fromEntries(bodyTypes.map((type) => [type, bytes])),
  }
}

function failure(status: number, errors: PublicError[]): Json {
  return {
    description: errors.map(({ code, meaning }) => `\`${code}\`: ${meaning}`).join('\n\n'),
    headers: headersOfFailure(status),
    content: {
      'application/json': {
        schema: {
          allOf: [
            { $ref: '#/components/schemas/ErrorEnvelope' },
            { properties: { code: { enum: errors.map(({ code }) => code) } } },
          ],
        },
        examples: Object.fromEntries(errors.map((error) => [error.code, { value: exampleOf(error) }])),
      },
    },
  }
}

function exampleOf({ code, httpStatus, retryable, terminal }: PublicError): Json {
  const retryAfter = code === 'RateLimited' ? 3 : httpStatus === 503 || code === 'OperationInProgress' ? 1 : undefined
  return {
    code,
    retryable,
    terminal,
    ...(retryAfter === undefined ? {} : { retryAfter }),
    correlationId: '5f0c2a52-6f0e-4d5c-9d8b-0a3f0f3b9a11',
    ...(code === 'ValidationFailed' ? { issues: [{ path: '/body', rule: 'maxLength' }] } : {}),
    ...(code === 'IdentityAssertionInvalid' ? { issues: [{ path: '/assertion', rule: 'audience' }] } : {}),
  }
}

function eventSchemas(): Json {
  const names = Object.keys(eventDefinitions) as EventName[]
  const schemas = names.map((name) => [
    `Event.${name}`,
    { ...eventSchema(name), description: eventDefinitions[name].meaning },
  ])
  const mapping = Object.fromEntries(names.map((name) => [name, `#/components/schemas/Event.${name}`]))
  const oneOf = Object.values(mapping).map(($ref) => ({ $ref }))
  const described = {
    Event: { oneOf, discriminator: { propertyName: 'type', mapping } },
    ...Object.fromEntries(schemas),
  }
  return openForNewFields(described)
}

/** Allows unknown fields, which clients must accept because later versions add some. */
function openForNewFields<Described extends object>(described: Described): Described {
  return JSON.parse(JSON.stringify(described, (key, item) => (key === 'additionalProperties' ? undefined : item)))
}

/**
 * Returns a deep copy, so that the validating schemas stay unchanged, with patterns that all languages
 * read.
 */
function copyOf(value: object): object {
  return JSON.parse(
    JSON.stringify(value, (key, item) => {
      if (key === 'maxJsonBytes') return undefined
      return key === 'pattern' ? (portablePatterns[item] ?? item) : item
    }),
  )
}
