import type { FastifyContextConfig } from 'fastify'
import { CONTRACT_VERSION } from '../checks/version.ts'
import { OperationId } from '../schemas/fields.ts'
import type { OwnHeader } from './route-description.ts'

type Json = Record<string, unknown>

const text = { type: 'string' }

const OF_PAGES: Json[] = [
  {
    name: 'Origin',
    in: 'header',
    required: true,
    schema: text,
    description: 'Origin of the page, one that the installation allows. A browser sends it by itself.',
    example: 'http://localhost:8081',
  },
  {
    name: 'X-Service-Widget-Version',
    in: 'header',
    required: true,
    schema: { type: 'string', enum: [CONTRACT_VERSION] },
    description: 'Version of the contract that the client speaks.',
    example: CONTRACT_VERSION,
  },
]

const EVERY_ROUTE: Json[] = [
  {
    name: 'X-Correlation-Id',
    in: 'header',
    schema: { type: 'string', pattern: '^[A-Za-z0-9._-]{1,64}$' },
    description: 'Name for the request in logs and answers; one is made where it is left out.',
  },
]

const IDEMPOTENCY_KEY: Json = {
  name: 'Idempotency-Key',
  in: 'header',
  schema: OperationId,
  description: 'Stable for the logical operation: a repeat with the same input gets the first answer again.',
  example: '018f3f9e-6a51-7bd2-9c6e-6a0d9e2f4b10',
}

const OWN: Record<OwnHeader, Json> = {
  'Last-Event-ID': {
    name: 'Last-Event-ID',
    in: 'header',
    schema: text,
    description: 'Id of the last event seen, `<epoch>-<sequence>`: the stream goes on after it.',
    example: '7f3a-42',
  },
  'If-None-Match': {
    name: 'If-None-Match',
    in: 'header',
    schema: text,
    description: 'ETags of answers that the client has.',
  },
}

/** Headers of a request, as the checks of its route read them. `Authorization` is told by the security scheme. */
export function parametersOf({ idempotent, keyField, described, operator }: FastifyContextConfig): Json[] {
  const key = {
    ...IDEMPOTENCY_KEY,
    required: idempotent === true,
    ...(keyField && { description: `${IDEMPOTENCY_KEY.description} Equal to \`${keyField}\`.` }),
  }
  const every = operator ? EVERY_ROUTE : [...OF_PAGES, ...EVERY_ROUTE]
  return [...every, ...(idempotent ? [key] : []), ...(described?.headers ?? []).map((name) => OWN[name])]
}

const CORRELATION = { 'X-Correlation-Id': { schema: text, description: 'Name of the request in the logs.' } }

/** Headers of a success. */
export function headersOfAnswer(
  { scoped, operator, idempotent, described }: FastifyContextConfig,
  status: number,
): Json {
  const replayed = { schema: { type: 'string', enum: ['true'] }, description: 'The first answer, given again.' }
  return {
    ...CORRELATION,
    ...(idempotent && status < 300 ? { 'Idempotency-Replayed': replayed } : {}),
    ...(scoped || operator ? { 'Cache-Control': { schema: text, description: '`no-store`, in any case.' } } : {}),
    ...(described?.headers?.includes('If-None-Match') ? { ETag: { schema: text } } : {}),
  }
}

/** Headers of a failure. */
export function headersOfFailure(status: number): Json {
  const seconds = { schema: { type: 'integer', minimum: 1 }, description: 'Seconds to wait, as `retryAfter`.' }
  return {
    ...CORRELATION,
    ...(status === 429 || status === 503 ? { 'Retry-After': seconds } : {}),
    ...(status === 401 ? { 'WWW-Authenticate': { schema: { type: 'string', enum: ['Bearer'] } } } : {}),
  }
}
