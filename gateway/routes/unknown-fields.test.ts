import { expect, it } from 'vitest'
import { WIDGET_PREFIX } from '../../contract/public-api.ts'
import { allCapabilities } from '../../test/support/capabilities.ts'
import { createTestCore } from '../test/test-core.ts'
import { startTestGateway } from '../test/test-gateway.ts'

// biome-ignore lint/suspicious/noExplicitAny: the OpenAPI document is untyped
type Json = any

const unknown = 'unknownField'

/** Returns the requests of the API document that have a JSON body, each with a valid example of the body. */
function requestsIn(document: Json): { method: string; path: string; body: Json }[] {
  return Object.entries<Json>(document.paths).flatMap(([path, methods]) =>
    Object.entries<Json>(methods).flatMap(([method, { requestBody }]) => {
      const json = requestBody?.content?.['application/json']
      if (!json || !path.startsWith(WIDGET_PREFIX)) return []
      const body = json.example ?? Object.values<Json>(json.examples)[0].value
      return [{ method: method.toUpperCase(), path: path.slice(WIDGET_PREFIX.length).replace(/\{\w+\}/g, 'x'), body }]
    }),
  )
}

/** Returns one variant of the body for each object in it. In the variant, this object has an unknown field. */
function withUnknownFields(body: Json, pointer = ''): { pointer: string; body: Json }[] {
  const nested = Object.entries<Json>(body).flatMap(([name, value]) =>
    // Skip form fields: the installation defines them, and the core checks them.
    name !== 'fields' && value !== null && typeof value === 'object' && !Array.isArray(value)
      ? withUnknownFields(value, `${pointer}/${name}`).map((each) => ({
          ...each,
          body: { ...body, [name]: each.body },
        }))
      : [],
  )
  return [{ pointer: `${pointer}/${unknown}`, body: { ...body, [unknown]: 1 } }, ...nested]
}

it('a form value with half of a surrogate pair is rejected, because the core would get another character', async () => {
  const core = createTestCore()
  core.capabilities = allCapabilities
  const { call } = await startTestGateway({ cores: [core] })
  const answer = await call('POST', '/forms/pre-chat', { body: { fields: { name: 'a\ud800' } } })
  expect([answer.status, await answer.json()]).toMatchObject([
    400,
    { code: 'ValidationFailed', issues: [{ path: '/fields/name', rule: 'pattern' }] },
  ])
  const whole = await call('POST', '/forms/pre-chat', { body: { fields: { name: 'a\ud83d\ude00\n' } } })
  // The core of this test has no forms.
  expect(whole.status).toBe(500)
})

it('every widget route with a JSON body rejects an unknown field in any object of the body', async () => {
  const core = createTestCore()
  core.capabilities = allCapabilities
  const { call, url } = await startTestGateway({ cores: [core] })
  const requests = requestsIn(await (await fetch(`${url}/docs/openapi.json`)).json())
  expect(requests.length).toBeGreaterThan(9)
  for (const { method, path, body } of requests) {
    for (const { pointer, body: sent } of withUnknownFields(body)) {
      const headers = { 'idempotency-key': sent.clientOperationId ?? 'op-1', 'content-type': 'application/json' }
      const answer = await call(method, path, { headers, body: sent })
      const issue = { path: pointer, rule: 'additionalProperties' }
      expect([path, answer.status, await answer.json()]).toMatchObject([
        path,
        400,
        { code: 'ValidationFailed', issues: expect.arrayContaining([issue]) },
      ])
    }
  }
})
