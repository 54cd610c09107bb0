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
    description: 'Origin of the page, which the installation must allow. Browsers send it by themselves.',
    example: 'http://localhost:8081',
  },
  {
    name: 'X-Service-Widget-Version',
    in: 'header',
    required: true,
    schema: { type: 'string', enum: [CONTRACT_VERSION] },
    description: 'Version of the contract that the client implements.',
    example: CONTRACT_VERSION,
  },
]

const EVERY_ROUTE: Json[] = [
  {
    name: 'X-Correlation-Id',
    in: 'header',
    schema: { type: 'string', pattern: '^[A-Za-z0-9._-]{1,64}$' },
    description: 'Id of the request in logs and answers; generated if missing.',
  },
]

const IDEMPOTENCY_KEY: Json = {
  name: 'Idempotency-Key',
  in: 'header',
  schema: OperationId,
  description: 'Stable per logical operation: a repeat with the same input gets the first answer again.',
  example: '018f3f9e-6a51-7bd2-9c6e-6a0d9e2f4b10',
}

const OWN: Record<OwnHeader, Json> = {
  'Last-Event-ID': {
    name: 'Last-Event-ID',
    in: 'header',
    schema: text,
    description: 'Id of the last received event, `<epoch>-<sequence>`: the stream resumes after it.',
    example: '7f3a-42',
  },
  'If-None-Match': {
    name: 'If-None-Match',
    in: 'header',
    schema: text,
    description: 'ETags of cached answers.',
  },
}

/**
 * Request headers that the checks of a route read. The security scheme describes `Authorization`.
 */
export function parametersOf({ idempotent, keyField, described, operator }: FastifyContextConfig): Json[] {
  const key = {
    ...IDEMPOTENCY_KEY,
    required: idempotent === true,
    ...(keyField && { description: `${IDEMPOTENCY_KEY.description} Equal to \`${keyField}\`.` }),
  }
  const every = operator ? EVERY_ROUTE : [...OF_PAGES, ...EVERY_ROUTE]
  return [...every, ...(idempotent ? [key] : []), ...(described?.headers ?? []).map((name) => OWN[name])]
}

const CORRELATION = { 'X-Correlation-Id': { schema: text, description: 'Id of the request in the logs.' } }

/** Headers of a success. */
export function headersOfAnswer(
  { scoped, operator, idempotent, described }: FastifyContextConfig,
  status: number,
): Json {
  const replayed = {
    schema: { type: 'string', enum: ['true'] },
    description: 'Set if this repeats the answer of an earlier request.',
  }
  return {
    ...CORRELATION,
    ...(idempotent && status < 300 ? { 'Idempotency-Replayed': replayed } : {}),
    ...(scoped || operator ? { 'Cache-Control': { schema: text, description: 'Always `no-store`.' } } : {}),
    ...(described?.headers?.includes('If-None-Match') ? { ETag: { schema: text } } : {}),
  }
}

/** Headers of a failure. */
export function headersOfFailure(status: number): Json {
  const seconds = { schema: { type: 'integer', minimum: 1 }, description: 'Seconds to wait, same as `retryAfter`.' }
  return {
    ...CORRELATION,
    ...(status === 429 || status === 503 ? { 'Retry-After': seconds } : {}),
    ...(status === 401 ? { 'WWW-Authenticate': { schema: { type: 'string', enum: ['Bearer'] } } } : {}),
  }
}
