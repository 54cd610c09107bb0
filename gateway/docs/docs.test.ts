import { get, type IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { Validator } from '@seriousme/openapi-schema-validator'
import { createParser } from 'eventsource-parser'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { publicErrors } from '../../contract/errors.ts'
import { deliveryEvents } from '../../contract/event-kinds.ts'
import { webhookHeaders } from '../../contract/webhook-headers.ts'
import { forAll } from '../../test/support/for-all.ts'
import { itLong, runs, someOf } from '../../test/support/is-long.ts'
import { validatorOf } from '../../test/support/json-schema.ts'
import { anyCharacter } from '../../test/support/nasty-values.ts'
import { eventDefinitions } from '../schemas/events.ts'
import { portablePatterns } from '../schemas/fields.ts'
import { SITE } from '../test/test-core.ts'
import { message, sharedGateway, startTestGateway } from '../test/test-gateway.ts'

const PREFIX = '/api/integrations/v1/widget'

// biome-ignore lint/suspicious/noExplicitAny: the tests inspect an arbitrary document
type Document = any

/** For tests that leave no trace in a gateway. */
const shared = sharedGateway()

async function readDocument() {
  const gateway = await shared()
  const response = await fetch(`${gateway.url}/docs/openapi.json`)
  const document: Document = await response.json()
  const operations: Document[] = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods as object).map(([method, operation]) => ({ ...operation, path, method })),
  )
  return { ...gateway, document, operations }
}
let read: ReturnType<typeof readDocument> | undefined
const startWithDocument = () => (read ??= readDocument())

describe('the OpenAPI document', () => {
  const documents = [
    ['3.2.0', 'openapi.json'],
    ['3.1.1', 'openapi-3.1.json'],
  ] as const
  test.each(someOf(documents, 1))('is valid OpenAPI %s at /docs/%s', async (version, name) => {
    const { url } = await shared()
    const response = await fetch(`${url}/docs/${name}`)
    expect(response.headers.get('content-type')).toContain('application/json')
    const document: Document = await response.json()
    expect(document.openapi).toBe(version)
    expect(await new Validator().validate(document)).toEqual({ valid: true })
  })

  test('describes the stream by its events, and in 3.1 by their data', async () => {
    const { url, document } = await startWithDocument()
    const { content } = document.paths[`${PREFIX}/events`].get.responses[200]
    const { itemSchema, schema, examples } = content['text/event-stream']
    expect(schema).toBeUndefined()
    expect(itemSchema.properties.data.contentSchema).toEqual({ $ref: '#/components/schemas/Event' })
    const { dataValue, serializedValue } = examples['message.received']
    const parsed: Document[] = []
    createParser({ onEvent: (event) => parsed.push(event) }).feed(serializedValue)
    expect(parsed).toEqual([dataValue])
    const older: Document = await (await fetch(`${url}/docs/openapi-3.1.json`)).json()
    const { responses } = older.paths[`${PREFIX}/events`].get
    expect(responses[200].content['text/event-stream']).toEqual({
      schema: { $ref: '#/components/schemas/Event' },
      example: JSON.parse(dataValue.data),
    })
  })

  test('describes each kind of event that destinations receive, with a valid example', async () => {
    const { document } = await startWithDocument()
    const { schemas } = document.components
    expect(Object.keys(document.webhooks)).toEqual(Object.keys(deliveryEvents))
    for (const [type, { post }] of Object.entries(document.webhooks) as [string, Document][]) {
      const { schema, example } = post.requestBody.content['application/json']
      expect(schema).toEqual({ $ref: `#/components/schemas/Webhook.${type}` })
      const problems = validatorOf({ ...schema, components: { schemas } })
      expect(problems(example), type).toEqual([])
      expect(problems({ ...example, later: 1 }), type).toEqual([])
      expect(problems({ ...example, data: {} }), type).not.toEqual([])
      const sent = Object.keys(
        webhookHeaders({
          deliveryId: 'dlv_1',
          correlationId: 'c',
          body: new Uint8Array(),
          secrets: { active: 'whsec_AA==', all: ['whsec_AA=='] },
          at: 0,
        }),
      )
      const described = post.parameters.map(({ name }: Document) => name.toLowerCase())
      expect(described.toSorted()).toEqual(sent.filter((name) => !/^(content-type|user-agent)$/.test(name)).toSorted())
    }
  })

  test('describes every route of the widget and of lead delivery, and nothing else', async () => {
    const { gateway, operations } = await startWithDocument()
    const described = operations.map(({ method, path }) => `${method.toUpperCase()} ${path}`)
    for (const each of described) {
      const [method, path = ''] = each.split(' ')
      expect([PREFIX, '/api/leads'].some((prefix) => path.startsWith(`${prefix}/`))).toBe(true)
      const url = path.replace(/\{(\w+)\}/g, ':$1')
      expect(gateway.hasRoute({ method: method as 'GET', url }), each).toBe(true)
    }
    expect(described).toContain('POST /api/leads/{leadId}/delivery-attempts')
    expect(described).toContain('POST /api/leads/retries/{attemptId}')
    for (const route of ['GET /config/{publicSiteKey}', 'POST /sessions', 'POST /messages', 'GET /events'])
      expect(described).toContain(route.replace(' ', ` ${PREFIX}`))
  })

  test('describes name, summary, headers and failures of every route', async () => {
    const { operations } = await startWithDocument()
    const names = operations.map(({ operationId }) => operationId)
    expect(new Set(names).size).toBe(names.length)
    for (const { path, method, operationId, summary, tags, parameters, security, responses } of operations) {
      const route = `${method} ${path}`
      expect([operationId, summary, tags?.[0]], route).toEqual(Array(3).fill(expect.stringMatching(/\w/)))
      const headers = parameters.filter((each: Document) => each.in === 'header').map((each: Document) => each.name)
      expect(Object.keys(responses), route).toEqual(expect.arrayContaining(['400', '403', '429', '500', '503']))
      if (path.startsWith('/api/leads/')) {
        expect(headers).toEqual(['X-Correlation-Id'])
        expect(security, route).toEqual([{ workspaceSession: [] }])
        expect(Object.keys(responses), route).toEqual(
          expect.arrayContaining(['200', '201', '401', '404', '409', '413']),
        )
        continue
      }
      expect(headers).toEqual(expect.arrayContaining(['Origin', 'X-Service-Widget-Version']))
      const open = path.includes('/config/') || path.endsWith('/sessions')
      expect(security, route).toEqual(open ? [] : [{ accessGrant: [] }])
      expect('401' in responses, route).toBe(!open)
    }
    const send = operations.find(({ operationId }) => operationId === 'sendMessage')
    expect(send.parameters.map((each: Document) => each.name)).toContain('Idempotency-Key')
    const events = operations.find(({ operationId }) => operationId === 'openEvents')
    expect(events.parameters.map((each: Document) => each.name)).toContain('Last-Event-ID')
  })

  test('lets answers and events have unknown fields, and requires no header that browsers set', async () => {
    const { document, operations } = await startWithDocument()
    const { ErrorEnvelope, ...events } = document.components.schemas
    const closed = /"additionalProperties":false/
    expect(JSON.stringify(ErrorEnvelope)).toMatch(closed)
    expect(JSON.stringify(events)).not.toMatch(closed)
    for (const { operationId, parameters, responses } of operations) {
      expect(JSON.stringify(responses), operationId).not.toMatch(closed)
      const origin = parameters.find((each: Document) => each.name === 'Origin')
      expect(origin?.required ?? false, operationId).toBe(false)
    }
    expect(JSON.stringify(operations.map(({ requestBody }) => requestBody))).toMatch(closed)
  })

  test('has patterns that every language reads, without Unicode properties, lookarounds or surrogates', async () => {
    const { document } = await startWithDocument()
    const patterns = new Set<string>()
    JSON.stringify(document, (key, value) => {
      if (key === 'pattern') patterns.add(value)
      return value
    })
    expect(patterns.size).toBeGreaterThan(4)
    for (const pattern of patterns) {
      expect(pattern).not.toMatch(/\\p\{|\\u|\(\?/i)
      expect(() => [new RegExp(pattern), new RegExp(pattern, 'u')]).not.toThrow()
    }
  })

  itLong('has patterns that accept the same texts as the patterns that validate requests', () => {
    const unit = fc.oneof(
      fc.string({ unit: anyCharacter, maxLength: 3 }),
      fc.constantFrom('\t', '\n', '\r', ' ', '\u0085', '\u00a0', '\u2028', '\ufeff', '\u{1f600}', 'a'),
    )
    const texts = fc.array(unit, { maxLength: 6 }).map((units) => units.join(''))
    for (const [validating, documented] of Object.entries(portablePatterns)) {
      const validates = new RegExp(validating, 'u')
      forAll([texts], runs(2_000, 10), (text) => {
        for (const flags of ['', 'u']) expect(new RegExp(documented, flags).test(text)).toBe(validates.test(text))
      })
    }
  })

  test('has a valid example for each body and answer', async () => {
    const { operations, document } = await startWithDocument()
    const { schemas } = document.components
    const checks = new Map<string, ReturnType<typeof validatorOf>>()
    /** Returns the cached check of a schema. Most answers share a schema, and compiling is slow. */
    const checkOf = (schema: Document) => {
      const key = JSON.stringify(schema)
      const check = checks.get(key) ?? validatorOf({ ...schema, components: { schemas } })
      checks.set(key, check)
      return check
    }
    for (const { path, method, requestBody, responses } of operations) {
      const contents = [requestBody, ...Object.values(responses)].flatMap((each: Document) => {
        return Object.values(each?.content ?? {})
      }) as Document[]
      for (const { schema, itemSchema, example, examples = {} } of contents) {
        if (schema?.format === 'binary') continue
        const values = [example, ...Object.values(examples).map((each: Document) => each.value ?? each.dataValue)]
        const given = values.filter((value) => value !== undefined)
        expect(given.length, `${method} ${path}`).toBeGreaterThan(0)
        const problems = checkOf(schema ?? itemSchema)
        for (const value of given) expect(problems(value), `${method} ${path}`).toEqual([])
      }
    }
  })

  test('describes the screenshot upload, and which idempotency keys are optional', async () => {
    const { operations } = await startWithDocument()
    const named = (name: string) => operations.find(({ operationId }) => operationId === name)
    const upload = named('uploadScreenshot')
    expect(Object.keys(upload.requestBody.content)).toEqual(['image/png', 'image/jpeg', 'image/webp'])
    expect(upload.requestBody.description).toContain('5242880')
    expect(Object.keys(upload.responses)).toEqual(expect.arrayContaining(['201', '404', '409', '410', '413', '415']))
    const key = (name: string) => named(name).parameters.find((each: Document) => each.name === 'Idempotency-Key')
    expect([key('reportPageContext').required, key('uploadScreenshot').required]).toEqual([false, true])
    for (const name of ['retryMessage', 'submitPreChatForm', 'submitOfflineForm', 'setTyping'])
      expect(named(name).responses[404].content['application/json'].examples, name).toHaveProperty('RouteNotAdvertised')
  })

  test('shows the limits of the contract, and the routes enforce them', async () => {
    const { document, call } = await startWithDocument()
    const operation = (path: string, method: string) => document.paths[`${PREFIX}${path}`][method]
    const sent = operation('/messages', 'post').requestBody.content['application/json'].schema
    expect(sent.properties.body.maxLength).toBe(4000)
    const limit = operation('/messages', 'get').parameters.find((each: Document) => each.name === 'limit')
    expect(limit.schema.maximum).toBe(100)
    const context = operation('/context/page', 'post').requestBody.content['application/json'].schema
    expect(context.description).toContain('at most 16384 bytes')

    const send = async (body: string) =>
      (await call('POST', '/messages', { body: { ...message('op-1'), body } })).status
    expect([await send('x'.repeat(4000)), await send('x'.repeat(4001))]).toEqual([202, 400])
    const list = async (max: number) => (await call('GET', `/messages?limit=${max}`)).status
    expect([await list(100), await list(101)]).toEqual([200, 400])
    const report = async (title: string) =>
      (await call('POST', '/context/page', { body: { url: 'https://shop.example/', title } })).status
    expect([await report('x'.repeat(16_000)), await report('€'.repeat(5_500))]).toEqual([204, 400])
  })

  test('gives each failure the status and flags of the error table', async () => {
    const { operations } = await startWithDocument()
    const table = new Map(publicErrors.map((error) => [error.code as string, error]))
    for (const { responses } of operations) {
      for (const [status, response] of Object.entries(responses) as [string, Document][]) {
        if (Number(status) < 400) continue
        for (const { value } of Object.values(response.content['application/json'].examples) as Document[]) {
          const { httpStatus, retryable, terminal } = table.get(value.code)!
          expect([httpStatus, retryable, terminal]).toEqual([Number(status), value.retryable, value.terminal])
        }
      }
    }
  })

  test('has a schema for each event type', async () => {
    const { document } = await startWithDocument()
    for (const name of Object.keys(eventDefinitions))
      expect(document.components.schemas).toHaveProperty([`Event.${name}`])
    expect(document.components.schemas.Event.oneOf).toHaveLength(Object.keys(eventDefinitions).length)
  })

  test('is a copy, so changes of the document do not change the validating schemas', async () => {
    const { call } = await startWithDocument()
    const unknown = await call('POST', '/messages', { body: message('op-1', { examples: 1 }) })
    expect(await unknown.json()).toMatchObject({ issues: [{ path: '/examples', rule: 'additionalProperties' }] })
    expect((await call('POST', '/messages', { body: message('op-1', { locale: 7 }) })).status).toBe(400)
  })
})

describe('docs page', () => {
  test('loads nothing from other hosts, and its policy forbids such loads', async () => {
    const { url } = await shared()
    const page = await fetch(`${url}/docs/`)
    const html = await page.text()
    expect(page.status).toBe(200)
    const policy = page.headers.get('content-security-policy')
    expect(policy).toMatch(/^default-src 'none'; script-src 'self' 'sha256-[^']+'; /)
    expect(policy).toContain("connect-src 'self'")
    expect(policy).not.toMatch(/script-src[^;]*unsafe|https?:|\*/)
    for (const [, source] of html.matchAll(/<(?:script|link|img)[^>]*(?:src|href)="([^"]*)"/g)) {
      expect(source).not.toMatch(/^(?:https?:)?\/\//)
      const loaded = await fetch(new URL(source!, `${url}/docs/`))
      expect([loaded.status, loaded.headers.get('content-type')]).toEqual([200, expect.stringContaining('javascript')])
      expect((await loaded.text()).length).toBeGreaterThan(100_000)
    }
    expect((await fetch(`${url}/livez`)).headers.get('content-security-policy')).not.toContain('script-src')
  })

  test('has one address, and its redirect is no file', async () => {
    const { url } = await shared()
    const redirect = await fetch(`${url}/docs`, { redirect: 'manual' })
    expect([redirect.status, redirect.headers.get('location')]).toEqual([301, '/docs/'])
    expect(redirect.headers.get('content-type')).not.toBe('application/octet-stream')
  })

  test('can call the API with the origin that the reader enters', async () => {
    const { url } = await shared()
    const trial = (headers: Record<string, string>) =>
      fetch(`${url}${PREFIX}/config/pk_demo`, { headers: { 'x-service-widget-version': '1.0', ...headers } })
    const own = await trial({ 'sec-fetch-site': 'same-origin', 'x-docs-origin': SITE })
    expect([own.status, own.headers.get('access-control-allow-origin')]).toEqual([200, SITE])
    const refused = await trial({ 'sec-fetch-site': 'same-origin', 'x-docs-origin': 'https://evil.example' })
    expect(refused.status).toBe(403)
  })

  test.each(['cross-site', 'same-site', 'none', ''])(
    'is the only page that may set the origin: others get 403 (Sec-Fetch-Site: %j)',
    async (site) => {
      const { raw } = await shared()
      const answer = await raw(
        `GET ${PREFIX}/config/pk_demo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Service-Widget-Version: 1.0\r\nX-Docs-Origin: ${SITE}\r\n${site ? `Sec-Fetch-Site: ${site}\r\n` : ''}\r\n`,
      )
      expect(answer).toMatch(/^HTTP\/1\.1 403 /)
    },
  )

  itLong('sends the script of the page compressed, in an encoding that the browser accepts', async () => {
    const { url } = await shared()
    const download = async (encodings: string) => {
      const response = await new Promise<IncomingMessage>((resolve, reject) =>
        get(`${url}/docs/js/scalar.js`, { headers: { 'accept-encoding': encodings } }, resolve).on('error', reject),
      )
      expect(response.headers.vary).toContain('accept-encoding')
      return { encoding: response.headers['content-encoding'], content: await buffer(response) }
    }
    const plain = await download('br;q=0, identity')
    expect(plain.encoding).toBeUndefined()
    const [brotli, zipped] = [await download('gzip, deflate, br, zstd'), await download('gzip;q=0.5')]
    expect([brotli.encoding, zipped.encoding]).toEqual(['br', 'gzip'])
    expect(brotliDecompressSync(brotli.content).equals(plain.content)).toBe(true)
    expect(gunzipSync(zipped.content).equals(plain.content)).toBe(true)
    expect(brotli.content.length).toBeLessThan(plain.content.length / 3.5)
  })

  test('answers 404 if the setting API_DOCS is off', async () => {
    const { url, call } = await startTestGateway({ env: { API_DOCS: 'off' } })
    const trial = { origin: null, 'sec-fetch-site': 'same-origin', 'x-docs-origin': SITE }
    expect((await call('GET', '/config/pk_demo', { headers: trial })).status).toBe(403)
    for (const path of ['/docs/', '/docs/openapi.json', '/docs/js/scalar.js'])
      expect((await fetch(`${url}${path}`)).status).toBe(404)
  })
})
