import fc from 'fast-check'
import { brokenBytes, nearlyGood } from '../support/mutations.ts'
import { nastyBodies, nastyText } from '../support/nasty-values.ts'
import type { Fixtures } from './fixtures.ts'
import type { RawRequest } from './raw-client.ts'
import { valuesOf } from './schema-values.ts'

// biome-ignore lint/suspicious/noExplicitAny: the OpenAPI document is untyped
type Json = any

/** A route of the OpenAPI document. */
export interface Operation {
  method: string
  /** Path with parameters in braces. */
  path: string
  description: Json
}

export function operationsOf(document: Json): Operation[] {
  return Object.entries<Json>(document.paths).flatMap(([path, methods]) =>
    Object.entries<Json>(methods).map(([method, description]) => ({ method: method.toUpperCase(), path, description })),
  )
}

/** Generates requests to a route: valid, nearly valid, and random bytes. */
export function routeCases(operation: Operation, fixtures: Fixtures): fc.Arbitrary<RawRequest> {
  return fc
    .record({
      target: targets(operation, fixtures),
      headers: headersFor(operation, fixtures),
      body: bodies(operation, fixtures),
    })
    .map(({ target, headers, body }) => ({
      method: operation.method,
      target,
      headers: matchHeadersToBody(headers, body),
      body,
    }))
}

/** Generates requests whose method or path matches no route, or differs slightly from a route. */
export function strangeRequests(operations: Operation[], fixtures: Fixtures): fc.Arbitrary<RawRequest> {
  const methods = fc.constantFrom(
    'GET',
    'HEAD',
    'POST',
    'PUT',
    'PATCH',
    'DELETE',
    'OPTIONS',
    'TRACE',
    'PROPFIND',
    'QUERY',
  )
  const known = fc.constantFrom(...operations.map(({ path }) => path.replace(/\{\w+\}/g, 'x')), '/docs/', '/livez', '/')
  const ends = fc.constantFrom(
    '',
    '/',
    '//',
    '/..',
    '/%2e%2e/',
    '%00',
    '%',
    '%zz',
    ';a=b',
    '?',
    '?a=%ff',
    '/*',
    '#a',
    '\\',
  )
  const paths = fc.oneof(
    fc.tuple(known, ends).map((parts) => parts.join('')),
    fc.tuple(ends, known).map(([end, path]) => `/${end}${path}`),
    fc.webPath().map((path) => `/${path}`),
    fc.constantFrom(
      '*',
      'http://evil.example/',
      '//evil.example/',
      `/${'a'.repeat(9000)}`,
      '/api/integrations/v1/widget/../../../../livez',
    ),
  )
  return fc.record({ method: methods, target: paths, headers: fc.constant(goodHeaders(fixtures)) })
}

const goodHeaders = ({ origin, accessGrant }: Fixtures): [string, string][] => [
  ['Origin', origin],
  ['X-Service-Widget-Version', '1.0'],
  ['Authorization', `Bearer ${accessGrant}`],
  ['Content-Type', 'application/json'],
]

function targets({ path, description }: Operation, { known }: Fixtures): fc.Arbitrary<string> {
  const parameters: Json[] = description.parameters ?? []
  const inPath = (name: string) =>
    fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom(...((known[name] as string[]) ?? ['x'])).map(encodeURIComponent) },
      { weight: 1, arbitrary: nastyText.map((text) => encodeURIComponent(text.toWellFormed()).slice(0, 8000)) },
      { weight: 1, arbitrary: fc.constantFrom('', '%', '%00', '%ff%fe', '..', '%2f', 'a%0d%0ab', '*', '{}') },
    )
  const segments = path.split('/').map((segment) => {
    const name = /^\{(\w+)\}$/.exec(segment)?.[1]
    return name === undefined ? fc.constant(segment) : inPath(name)
  })
  const named = parameters.filter((each) => each.in === 'query')
  const anything = nastyText.map((text) => encodeURIComponent(text.toWellFormed()).slice(0, 6000))
  const query = fc.array(
    fc.oneof(
      ...named.map(({ name, schema }) => valuesOf(schema, known, name).map((value) => `${name}=${value}`)),
      ...named.map(({ name }) => anything.map((value) => `${name}=${value}`)),
      fc.constantFrom(
        '',
        '=',
        '&',
        'a',
        'a[]=1',
        'a.b=1',
        '__proto__=1',
        'access_token=x',
        'Grant=x',
        'afterSequence',
        'limit[]=1',
      ),
    ),
    { maxLength: 3 },
  )
  const withQuery = fc.option(query, { nil: [], freq: named.length > 0 ? 3 : 1 })
  return fc
    .tuple(fc.tuple(...segments), withQuery)
    .map(([parts, pairs]) => parts.join('/') + (pairs.length > 0 ? `?${pairs.join('&')}` : ''))
}

/** Generates header values. They contain no line breaks, which would start another header. */
const headerText = nastyText.map((text) =>
  Buffer.from(text.replace(/[\r\n\0]/g, ''), 'utf8')
    .toString('latin1')
    .slice(0, 3000),
)

function headersFor({ description }: Operation, fixtures: Fixtures): fc.Arbitrary<[string, string][]> {
  const { origin, accessGrant, workspaceSession, serviceTokens, known } = fixtures
  const operator = description.security?.[0]?.workspaceSession !== undefined
  const credential = operator ? workspaceSession : accessGrant
  const key = (known.clientOperationId as string[])[0]!
  const headers: Record<string, [good: string, bad: string[]]> = {
    Origin: [
      origin,
      ['null', 'https://evil.example', `${origin}.evil.example`, `${origin}, ${origin}`, origin.toUpperCase()],
    ],
    'X-Service-Widget-Version': ['1.0', ['1', '2.0', '1.0, 1.0', '']],
    Authorization: [
      `Bearer ${credential}`,
      [
        `Bearer ${operator ? accessGrant : workspaceSession}`,
        `Bearer ${serviceTokens.gateway}`,
        `Basic YTpi`,
        'Bearer',
        `Bearer ${credential}x`,
        'Bearer a.b.c',
        'Bearer e30.e30.',
      ],
    ],
    'Idempotency-Key': [key, ['', 'a b', 'x'.repeat(129), '☃']],
    'X-Correlation-Id': ['fuzz-1', ['', 'a b', 'x'.repeat(65)]],
    'Last-Event-ID': ['x-1', ['-', '1-', `x-${'9'.repeat(100)}`, 'x--1', 'a'.repeat(300)]],
    Accept: ['*/*', ['text/html', 'a', '']],
    'X-Forwarded-For': ['127.0.0.1', ['::1', 'a, b', '999.1.1.1']],
    'If-None-Match': ['"x"', ['*', 'W/"x', '']],
    'Sec-Fetch-Site': ['same-origin', ['cross-site', 'x']],
    'X-Docs-Origin': [origin, ['https://evil.example']],
    Expect: ['100-continue', ['200-ok']],
    'Content-Encoding': ['identity', ['gzip', 'br', 'x']],
    'Accept-Encoding': ['gzip', ['x;q=9']],
    'X-HTTP-Method-Override': ['DELETE', ['GET']],
  }
  const always = new Set(['Origin', 'X-Service-Widget-Version', 'Authorization', 'Idempotency-Key'])
  const each = Object.entries(headers).map(([name, [good, bad]]) => {
    const one = (value: string): [string, string][] => [[name, value]]
    const invalid = fc.oneof(
      fc.constantFrom(...bad).map(one),
      headerText.map(one),
      fc.constant<[string, string][]>([]),
      // Sends the header twice, with an invalid second value.
      fc.constantFrom(...bad).map((value): [string, string][] => [...one(good), ...one(value)]),
    )
    const usual = always.has(name) ? one(good) : []
    return fc.oneof(
      { weight: 120, arbitrary: fc.constant(usual) },
      { weight: 1, arbitrary: fc.constant(one(good)) },
      { weight: 2, arbitrary: invalid },
    )
  })
  return fc.tuple(...each).map((lists) => lists.flat().filter(([, value]) => !/[\r\n\0]/.test(value)))
}

/**
 * Makes most requests consistent: sets the content type of the body. For a send, uses the operation
 * id as the idempotency key.
 */
function matchHeadersToBody(headers: [string, string][], body: Buffer | undefined): [string, string][] {
  if (body === undefined) return headers
  const type = body[0] === 0x89 ? 'image/png' : 'application/json'
  const operation = /"clientOperationId":"([\w.:-]{1,128})"/.exec(body.toString('latin1'))?.[1]
  const keyed = headers.map(([name, value]): [string, string] =>
    name === 'Idempotency-Key' && operation !== undefined && value.length > 2 ? [name, operation] : [name, value],
  )
  return body.length % 17 === 3 ? keyed : [...keyed, ['Content-Type', type]]
}

function bodies({ description }: Operation, fixtures: Fixtures): fc.Arbitrary<Buffer | undefined> {
  const content = description.requestBody?.content
  if (content === undefined) {
    return fc.oneof(
      { weight: 8, arbitrary: fc.constant(undefined) },
      { weight: 1, arbitrary: fc.constantFrom(...nastyBodies) },
    )
  }
  const schema = content['application/json']?.schema
  if (schema === undefined) {
    const picture = Buffer.from(fixtures.picture)
    return fc.oneof(fc.constant(picture), brokenBytes(picture), fc.constantFrom(...nastyBodies))
  }
  const good = valuesOf(schema, fixtures.known)
  return fc.oneof(
    { weight: 4, arbitrary: good.map(toBytes) },
    { weight: 6, arbitrary: good.chain(nearlyGood).map(toBytes) },
    { weight: 2, arbitrary: good.map(toBytes).chain(brokenBytes) },
    { weight: 1, arbitrary: fc.constantFrom(...nastyBodies) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 500 }).map((bytes) => Buffer.from(bytes)) },
    { weight: 1, arbitrary: fc.constant(undefined) },
  )
}

const toBytes = (value: unknown): Buffer => Buffer.from(JSON.stringify(value) ?? '')
