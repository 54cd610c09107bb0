import { expect, test } from 'vitest'
import { clientNetwork, forwardedAddress } from './client-network.ts'

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['192.0.2.7:4711', '192.0.2.7'],
  [' 192.0.2.7:1 ', '192.0.2.7'],
  ['"192.0.2.7:4711"', '192.0.2.7'],
  ['2001:db8::7', '2001:db8::7'],
  ['[2001:db8::7]', '2001:db8::7'],
  ['[2001:db8::7]:4711', '2001:db8::7'],
  ['"[2001:db8::7]:4711"', '2001:db8::7'],
  ['::ffff:192.0.2.7', '::ffff:192.0.2.7'],
  ['[::ffff:192.0.2.7]:4711', '::ffff:192.0.2.7'],
  ['fe80::1%eth0', 'fe80::1%eth0'],
  ['', 'unknown'],
  ['unknown', 'unknown'],
  ['_hidden', 'unknown'],
  ['host.example:4711', 'unknown'],
  ['192.0.2.7:4711:1', 'unknown'],
  ['192.0.2.7:port', 'unknown'],
  ['192.0.2.7:123456', 'unknown'],
  ['192.0.2', 'unknown'],
  ['0x7f000001', 'unknown'],
  ['[192.0.2.7', 'unknown'],
])('the entry %j of X-Forwarded-For has the address %s', (entry, address) => {
  expect(forwardedAddress(entry)).toBe(address)
})

test.each([
  ['192.0.2.7:4711', 'unknown'],
  ['nonsense', 'unknown'],
  ['', 'unknown'],
])('text without an address counts as one client (%j)', (text, network) => {
  expect(clientNetwork(text)).toBe(network)
})
