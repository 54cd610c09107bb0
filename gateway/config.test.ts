import { describe, expect, test } from 'vitest'
import { clientNetwork } from '../platform/addresses/client-network.ts'
import { readConfig } from './config.ts'

const token = { CORE_TOKEN: 'a-token-of-some-length' }

describe('gateway settings', () => {
  test('have defaults, which also replace empty values', () => {
    expect(readConfig({ ...token, GATEWAY_PORT: '' })).toMatchObject({
      GATEWAY_PORT: 8080,
      CORE_URLS: ['http://localhost:8090'],
      TRUST_PROXY: false,
      RATE_LIMIT_FACTOR: 1,
      HEARTBEAT_SECONDS: 15,
    })
  })

  test('take the token from the secrets file if the environment has none', () => {
    expect(readConfig({}, { gatewayToken: 'from-the-file' }).CORE_TOKEN).toBe('from-the-file')
    expect(readConfig(token, { gatewayToken: 'from-the-file' }).CORE_TOKEN).toBe(token.CORE_TOKEN)
    expect(() => readConfig({})).toThrow(/^CORE_TOKEN is missing/)
  })

  test.each([
    ['GATEWAY_PORT', '70000', 'GATEWAY_PORT must be a whole number from 0 to 65535'],
    ['GATEWAY_PORT', 'hunter2', 'GATEWAY_PORT must be a whole number from 0 to 65535'],
    ['RATE_LIMIT_FACTOR', '0', 'RATE_LIMIT_FACTOR must be a number above 0'],
    ['LOG_LEVEL', 'hunter2', 'LOG_LEVEL must be one of fatal, error, warn, info, debug, trace, silent'],
    ['CORE_TOKEN', 'hunter2', 'CORE_TOKEN must have at least 16 characters'],
    ['CORE_URLS', 'localhost:8090', /^CORE_URLS must be one or more http, https or dns URLs/],
    ['CORE_URLS', 'http://user:hunter2@core', /^CORE_URLS must be/],
    ['CORE_URLS', 'dns://hunter2', /^CORE_URLS must be/],
    ['TRUST_PROXY', 'yes', /^TRUST_PROXY must be off/],
    ['TRUST_PROXY', '10.0.0.0/33', /^TRUST_PROXY must be off/],
  ])('are rejected with an error that contains the bounds and not the value (%s=%s)', (name, value, message) => {
    const read = () => readConfig({ ...token, [name]: value })
    expect(read).toThrow(message)
    expect(read).not.toThrow('hunter2')
  })

  test('include a body limit that must be large enough for the longest message', () => {
    const read = (BODY_LIMIT_BYTES: string) => readConfig({ ...token, BODY_LIMIT_BYTES }).BODY_LIMIT_BYTES
    expect(() => read('33407')).toThrow(/^BODY_LIMIT_BYTES must be a whole number from 33408 /)
    expect(read('33408')).toBe(33_408)
  })

  test.each([
    ['off', false],
    ['2', 2],
    ['loopback, 10.0.0.0/8,2001:db8::/32', ['loopback', '10.0.0.0/8', '2001:db8::/32']],
  ])('include TRUST_PROXY, whose value %s is parsed', (text, proxies) => {
    expect(readConfig({ ...token, TRUST_PROXY: text }).TRUST_PROXY).toEqual(proxies)
  })
})

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3::4', '2001:db8:1:2::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['nonsense', 'unknown'],
])('counts the address %s as %s in limits per address', (address, network) => {
  expect(clientNetwork(address)).toBe(network)
})
