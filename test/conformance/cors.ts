import { expect } from 'vitest'
import type { Request } from './client.ts'
import { rule } from './rule.ts'
import type { Suite } from './suite.ts'

/** Tests of contract section 1: CORS headers and preflight requests. */
export function corsRules(suite: () => Suite): void {
  rule('C1.12', async () => {
    const { client, stack } = suite().roomy
    for (const path of ['/messages', '/sessions', '/events', '/config/pk_demo', '/sessions/identify']) {
      const { status, headers } = await client.call('OPTIONS', path, {
        headers: { 'access-control-request-method': 'POST', 'x-service-widget-version': null },
      })
      expect(status).toBeLessThan(300)
      expect(headers.get('access-control-allow-origin')).toBe(stack.demo.origin)
      expect(headers.get('access-control-max-age')).toBe('7200')
      expect(headers.get('vary')).toContain('Origin')
      expect(headers.get('access-control-allow-credentials')).toBeNull()
      const methods = headers.get('access-control-allow-methods')?.split(/, ?/)
      expect(methods).toEqual(expect.arrayContaining(['GET', 'POST', 'DELETE']))
      const names = headers.get('access-control-allow-headers')?.toLowerCase().split(/, ?/)
      expect(names).toEqual(
        expect.arrayContaining([
          'authorization',
          'content-type',
          'idempotency-key',
          'last-event-id',
          'x-service-widget-version',
        ]),
      )
    }
  })

  rule('C1.13', async () => {
    const { client } = suite().roomy
    for (const method of ['OPTIONS', 'GET', 'POST', 'PUT']) {
      for (const path of ['/messages', '/nowhere', '/config/pk_demo']) {
        const { headers } = await client.call(method, path, {
          headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' },
          body: method === 'POST' ? {} : undefined,
        })
        expect([...headers.keys()].filter((name) => name.startsWith('access-control-'))).toEqual([])
      }
    }
  })

  rule('C1.14', async () => {
    const { client, stack } = suite().roomy
    const failing: [string, string, Request][] = [
      ['GET', '/messages', {}],
      ['GET', '/nowhere', {}],
      ['PUT', '/messages', {}],
      ['POST', '/sessions', { body: '{' }],
      ['POST', '/sessions', { body: 'x'.repeat(70_000) }],
      ['GET', '/config/nobody', {}],
      ['GET', '/config/%zz', {}],
    ]
    for (const [method, path, request] of failing) {
      const { status, headers } = await client.call(method, path, request)
      expect(status).toBeGreaterThanOrEqual(400)
      expect(headers.get('access-control-allow-origin'), `${method} ${path}`).toBe(stack.demo.origin)
      expect(headers.get('access-control-expose-headers')?.split(/, ?/)).toEqual([
        'X-Correlation-Id',
        'Retry-After',
        'Idempotency-Replayed',
      ])
    }
  })
}
