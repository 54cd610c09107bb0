import { isIPv4 } from 'node:net'
import ipaddr from 'ipaddr.js'
import { UNKNOWN_ADDRESS } from './forwarded-address.ts'

const MAPPED_IPV4 = '::ffff:'

/**
 * Returns the key under which limits count an address: the IPv4 address, or the /64 network of an
 * IPv6 address. One client usually owns a whole /64 network. All text that is no address has one key.
 */
export function clientNetwork(address: string): string {
  // Most addresses are IPv4 addresses, which need no parsing.
  const withoutPrefix = address.startsWith(MAPPED_IPV4) ? address.slice(MAPPED_IPV4.length) : address
  if (isIPv4(withoutPrefix)) return withoutPrefix
  if (!ipaddr.isValid(address)) return UNKNOWN_ADDRESS
  const parsed = ipaddr.process(address)
  if (parsed.kind() === 'ipv4') return parsed.toString()
  const parts = (parsed as ipaddr.IPv6).parts.slice(0, 4)
  return `${parts.map((part) => part.toString(16)).join(':')}::/64`
}
