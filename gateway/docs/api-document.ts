import swagger, { type FastifyDynamicSwaggerOptions, type SwaggerTransform } from '@fastify/swagger'
import type { FastifyContextConfig, FastifyInstance } from 'fastify'
import { correlationIdPattern } from '../../contract/correlation-id.ts'
import { type PublicError, type PublicErrorCode, publicErrors } from '../../contract/errors.ts'
import type { EventName } from '../../contract/event-categories.ts'
import { type DeliveryEventType, deliveryEvents, type EventKind, eventOccasions } from '../../contract/event-kinds.ts'
import { CONTRACT, CONTRACT_VERSION } from '../../contract/public-api.ts'
import { SESSION_REFUSALS } from '../limits/refusals.ts'
import meanings from '../schemas/events.json' with { type: 'json' }
import { eventDefinitions, eventSchema } from '../schemas/events.ts'
import { Envelope, OperationId, portablePatterns } from '../schemas/fields.ts'
import { HistoryAnswer } from '../schemas/messages.ts'
import texts from './document.json' with { type: 'json' }

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
  const schemas = names.map((name) => [`Event.${name}`, { ...eventSchema(name), description: meanings[name] }])
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

type OwnHeader = keyof typeof texts.headers

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether the route needs a workspace session. It is then not part of the widget API. */
    operator?: boolean
    /** Error codes of the route, in addition to those of its checks. */
    errors?: readonly PublicErrorCode[]
    headers?: readonly OwnHeader[]
    stream?: boolean
  }
}

const OF_PAGES: PublicErrorCode[] = ['OriginNotAllowed', 'WidgetVersionUnsupported']
const OF_OPERATORS: PublicErrorCode[] = ['Unauthenticated', 'PermissionDenied']
const EVERY_ROUTE: PublicErrorCode[] = ['CredentialInUrl', 'ValidationFailed', 'InternalError', 'ServiceUnavailable']

const when = (applies: unknown, ...codes: PublicErrorCode[]) => (applies ? codes : [])

const errorsOf = (config: FastifyContextConfig, hasBody: boolean): Set<PublicErrorCode> =>
  new Set([
    ...EVERY_ROUTE,
    ...(config.operator ? OF_OPERATORS : OF_PAGES),
    ...when(config.scoped, ...SESSION_REFUSALS),
    ...when(config.scoped && !config.expiredToo, 'GrantExpired'),
    ...when(hasBody, 'UnsupportedMediaType', 'PayloadTooLarge'),
    ...when(config.idempotent, 'IdempotencyKeyInvalid', 'IdempotencyConflict', 'OperationInProgress'),
    ...when(config.keyField, 'IdempotencyKeyMismatch'),
    ...when(config.advertisedBy, 'RouteNotAdvertised'),
    ...when(config.rate, 'RateLimited'),
    ...(config.errors ?? []),
  ])

const { common, answers } = texts
const VERSION = { ...common.version, schema: { type: 'string', enum: [CONTRACT_VERSION] }, example: CONTRACT_VERSION }
const EVERY_HEADER = { ...common.correlationId, schema: { type: 'string', pattern: correlationIdPattern } }

/** Describes the request headers without `Authorization`, which the security scheme describes. */
function parametersOf({ idempotent, keyField, headers = [], operator }: FastifyContextConfig): Json[] {
  const key = { ...common.idempotencyKey, schema: OperationId, required: idempotent === true }
  if (keyField) key.description += ` Equal to \`${keyField}\`.`
  const every = operator ? [EVERY_HEADER] : [common.origin, VERSION, EVERY_HEADER]
  return [...every, ...(idempotent ? [key] : []), ...headers.map((name) => texts.headers[name])]
}

const headersOfAnswer = ({ scoped, operator, idempotent, headers }: FastifyContextConfig, status: number): Json => ({
  'X-Correlation-Id': answers.correlationId,
  ...(idempotent && status < 300 && { 'Idempotency-Replayed': answers.replayed }),
  ...((scoped || operator) && { 'Cache-Control': answers.cacheControl }),
  ...(headers?.includes('If-None-Match') && { ETag: answers.etag }),
})

const headersOfFailure = (status: number): Json => ({
  'X-Correlation-Id': answers.correlationId,
  ...((status === 429 || status === 503) && { 'Retry-After': answers.retryAfter }),
  ...(status === 401 && { 'WWW-Authenticate': answers.authenticate }),
})

const { operation, schema } = texts.webhooks
const kinds = Object.entries(deliveryEvents) as [DeliveryEventType, EventKind][]
const schemaName = (type: string) => `Webhook.${type}`
const refOf = (name: string) => ({ $ref: `#/components/schemas/${name}` })

/** Returns `receiveLeadCaptured` for `lead.captured`. */
const operationIdOf = (type: string) =>
  ['receive', ...type.split(/[.-]/).map((word) => `${word[0]!.toUpperCase()}${word.slice(1)}`)].join('')

function webhookPaths(): Json {
  return Object.fromEntries(
    kinds.map(([type, { version, example }]) => {
      const occurredAt = '2026-11-20T12:00:00.000Z'
      const body = { eventType: type, id: 'dlv_1', contractVersion: version, occurredAt, data: example }
      const content = { 'application/json': { schema: refOf(schemaName(type)), example: body } }
      const summary = `Sent when ${eventOccasions[type]}`
      const requestBody = { required: true, content }
      return [type, { post: { ...operation, operationId: operationIdOf(type), summary, requestBody } }]
    }),
  )
}

function webhookSchemas(): Json {
  const schemas = kinds.map(([type, { hasLeadFields, data }]) => {
    const properties = {
      eventType: { type: 'string', enum: [type] },
      ...schema.properties,
      // The mapped fields of a lead are texts.
      data: hasLeadFields ? { ...data, additionalProperties: { type: 'string' } } : data,
    }
    return [schemaName(type), { ...schema, description: `Sent when ${eventOccasions[type]}.`, properties }]
  })
  return Object.fromEntries(schemas)
}

const [message] = (HistoryAnswer as { examples?: { messages: Json[] }[] }).examples![0]!.messages
const streamExample = {
  sequence: 42,
  type: 'message.received',
  category: 'informational',
  occurredAt: '2026-01-02T03:04:09.120Z',
  data: { message },
}
const mediaType = 'text/event-stream'

/** Describes the event stream as OpenAPI 3.2 does: by the fields of one event. */
function streamAnswer(): Json {
  const { description, itemSchema } = texts.eventStream
  const data = JSON.stringify(streamExample)
  const shown = {
    dataValue: { id: '7f3a-42', event: streamExample.type, data },
    serializedValue: `id: 7f3a-42\nevent: ${streamExample.type}\ndata: ${data}\n\n`,
  }
  return { description, content: { [mediaType]: { itemSchema, examples: { [streamExample.type]: shown } } } }
}

/** Converts the document to 3.1, which has no `itemSchema`: the stream has the schema of its events' data. */
export function asOpenApi31(document: object): object {
  const older = structuredClone(document) as Document
  for (const operations of Object.values(older.paths))
    for (const { responses } of Object.values(operations))
      for (const { content } of Object.values(responses) as { content?: Json }[])
        if (content?.[mediaType])
          content[mediaType] = { schema: { $ref: '#/components/schemas/Event' }, example: streamExample }
  return { ...older, openapi: '3.1.1' }
}
