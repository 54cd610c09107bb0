import { describe, expect, test } from 'vitest'
import { startTestGateway } from '../test/test-gateway.ts'

const create = { publicSiteKey: 'pk_demo', clientInstanceId: 'browser' }

describe('X-Forwarded-For of a trusted proxy', () => {
  test.each([
    ['with ports', ['192.0.2.1:1', '192.0.2.1:2', '192.0.2.1']],
    ['with brackets and ports', ['[2001:db8::1]:1', '[2001:db8::2]:2', '2001:db8::3']],
    ['without an address', ['unknown', '_hidden', 'host.example:80', 'x'.repeat(500)]],
    ['behind a forged entry', ['203.0.113.1, 192.0.2.1:1', '203.0.113.2, 192.0.2.1:2']],
  ])('%s counts as one client', async (_, addresses) => {
    const { call } = await startTestGateway({ env: { RATE_LIMIT_CONFIG_PER_MINUTE: '1', TRUST_PROXY: '1' } })
    const statuses = []
    for (const address of addresses)
      statuses.push((await call('GET', '/config/pk_demo', { headers: { 'x-forwarded-for': address } })).status)
    expect(statuses).toEqual([200, ...addresses.slice(1).map(() => 429)])
    const other = await call('GET', '/config/pk_demo', { headers: { 'x-forwarded-for': '198.51.100.9:80' } })
    expect(other.status).toBe(200)
  })

  test('finds the client before the trusted ranges, whose entries may have ports', async () => {
    const { call, core } = await startTestGateway({ env: { TRUST_PROXY: 'loopback,10.0.0.0/8' } })
    const headers = { 'x-forwarded-for': '203.0.113.9, 192.0.2.1:4711, 10.0.0.2:80' }
    expect((await call('POST', '/sessions', { headers, body: create })).status).toBe(201)
    expect(core.calls.findLast(({ method }) => method === 'createSession')?.request).toMatchObject({
      clientAddress: '192.0.2.1',
    })
  })

  test('counts refusals before the route is known by address, too', async () => {
    const { call } = await startTestGateway({ env: { RATE_LIMIT_REFUSALS_PER_MINUTE: '1', TRUST_PROXY: '1' } })
    const refused = async (address: string) =>
      (
        await call('GET', '/messages', {
          headers: { origin: `https://${address}.evil.example`, 'x-forwarded-for': `192.0.2.1:${address}` },
        })
      ).status
    expect([await refused('1'), await refused('2')]).toEqual([403, 429])
  })

  test('is warned of once if it has no address', async () => {
    const { call, lines } = await startTestGateway({ env: { TRUST_PROXY: '1' } })
    const warnings = () => lines.filter((line) => line.includes('has no address of the client'))
    await call('GET', '/config/pk_demo', { headers: { 'x-forwarded-for': '192.0.2.1:80' } })
    expect(warnings()).toEqual([])
    for (const address of ['secret', 'other'])
      await call('GET', '/config/pk_demo', { headers: { 'x-forwarded-for': address } })
    expect(warnings()).toHaveLength(1)
    expect(warnings()[0]).not.toContain('secret')
  })
})
