import { describe, expect, test } from 'vitest'
import { refusal } from '../test/core-answers.ts'
import { SITE } from '../test/test-core.ts'
import { startTestGateway, type TestGateway } from '../test/test-gateway.ts'

const read = ({ call }: TestGateway, path = '/config/pk_demo', headers: Record<string, string> = {}) =>
  call('GET', path, { headers: { authorization: null, ...headers } })

/** Returns the status, and the title or the error code. */
async function outcomeOf(answer: Promise<Response>) {
  const response = await answer
  const { appearance, code } = (await response.json()) as { appearance?: { title: string }; code?: string }
  return [response.status, appearance?.title ?? code]
}

describe('configuration', () => {
  test('has the same headers and body each time; a HEAD answer has the length, a 304 answer has the ETag', async () => {
    const gateway = await startTestGateway()
    const [first, again] = [await read(gateway), await read(gateway)]
    const headersOf = ({ headers }: Response) => {
      const found = Object.fromEntries(headers)
      return { ...found, date: '', 'x-correlation-id': '' }
    }
    expect(headersOf(again)).toEqual(headersOf(first))
    expect(first.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(first.headers.get('access-control-allow-origin')).toBe(SITE)
    expect(first.headers.get('vary')).toBe('Origin')
    const body = await first.text()
    expect(await again.text()).toBe(body)
    expect(first.headers.get('content-length')).toBe(String(Buffer.byteLength(body)))
    const head = await gateway.call('HEAD', '/config/pk_demo')
    expect([head.status, head.headers.get('content-length')]).toEqual([200, String(Buffer.byteLength(body))])
    const etag = first.headers.get('etag')!
    const unchanged = await read(gateway, '/config/pk_demo', { 'if-none-match': etag })
    expect([unchanged.status, unchanged.headers.get('etag'), await unchanged.text()]).toEqual([304, etag, ''])
    expect(unchanged.headers.get('cache-control')).toBe('public, max-age=60')
    expect(unchanged.headers.get('content-type')).toBeNull()
  })

  test('shows a change at once, with another ETag', async () => {
    const gateway = await startTestGateway()
    const before = await read(gateway)
    gateway.core.siteTitle = 'Sale'
    const etag = before.headers.get('etag')!
    const after = await read(gateway, '/config/pk_demo', { 'if-none-match': etag })
    expect(after.headers.get('etag')).not.toBe(etag)
    expect(await outcomeOf(Promise.resolve(after))).toEqual([200, 'Sale'])
  })

  test.each(['InstallationNotFound', 'OriginNotAllowed', 'ConnectionDisabled'] as const)(
    'is refused with %s as soon as a core refuses it',
    async (code) => {
      const gateway = await startTestGateway()
      expect((await read(gateway)).status).toBe(200)
      gateway.core.refuseConfig = code
      const refused = await read(gateway)
      expect(await refused.json()).toMatchObject({ code, terminal: true })
      gateway.core.refuseConfig = undefined
      expect((await read(gateway)).status).toBe(200)
    },
  )

  test('is found as soon as the installation is created, although its key was unknown before', async () => {
    const gateway = await startTestGateway()
    for (let sent = 0; sent < 5; sent += 1)
      expect(await outcomeOf(read(gateway, '/config/pk_new'))).toEqual([404, 'InstallationNotFound'])
    gateway.core.siteKeys.add('pk_new')
    expect(await outcomeOf(read(gateway, '/config/pk_new'))).toEqual([200, 'Shop'])
  })

  test('is refused for an unknown key, and each request counts as a refusal', async () => {
    const gateway = await startTestGateway({ env: { RATE_LIMIT_REFUSALS_PER_MINUTE: '3' } })
    const statuses: number[] = []
    for (let sent = 0; sent < 5; sent += 1) statuses.push((await read(gateway, '/config/pk_new')).status)
    expect(statuses).toEqual([404, 404, 404, 429, 429])
    expect((await read(gateway)).status).toBe(429)
  })

  test('that was sent to one origin is not sent to an origin that the core refuses', async () => {
    const gateway = await startTestGateway()
    expect((await read(gateway)).status).toBe(200)
    gateway.core.origins.add('https://other.example')
    gateway.core.refuseNext = undefined
    await gateway.call('GET', '/messages', { headers: { origin: 'https://other.example' } })
    gateway.core.refuseNext = refusal('OriginNotAllowed')
    const foreign = { origin: 'https://other.example' }
    expect(await outcomeOf(read(gateway, '/config/pk_demo', foreign))).toEqual([403, 'OriginNotAllowed'])
    expect(await outcomeOf(read(gateway))).toEqual([200, 'Shop'])
  })

  test('is answered with 503 while no core is reachable, and with 200 afterwards', async () => {
    const gateway = await startTestGateway()
    expect((await read(gateway)).status).toBe(200)
    gateway.core.down = true
    expect(await outcomeOf(read(gateway))).toEqual([503, 'ServiceUnavailable'])
    gateway.core.down = false
    gateway.clock.advance(10_000)
    expect((await read(gateway)).status).toBe(200)
  })
})
