import { isIP, isIPv4 } from 'node:net'
import ipaddr from 'ipaddr.js'

/** All clients without a valid address share the limits of one address. */
export const UNKNOWN_ADDRESS = 'unknown'
const MAPPED_IPV4 = '::ffff:'

/**
 * Returns the key under which limits count an address: an IPv4 address, or the /64 network of an IPv6 address,
 * which usually belongs to one client.
 */
export function clientNetwork(address: string): string {
  const withoutPrefix = address.startsWith(MAPPED_IPV4) ? address.slice(MAPPED_IPV4.length) : address
  if (isIPv4(withoutPrefix)) return withoutPrefix
  if (!ipaddr.isValid(address)) return UNKNOWN_ADDRESS
  const parsed = ipaddr.process(address)
  if (parsed.kind() === 'ipv4') return parsed.toString()
  const parts = (parsed as ipaddr.IPv6).parts.slice(0, 4)
  return `${parts.map((part) => part.toString(16)).join(':')}::/64`
}

/**
 * Returns the address of an entry of `X-Forwarded-For`, which may have a port: `192.0.2.7:4711`,
 * `[2001:db8::7]:4711`. Returns `UNKNOWN_ADDRESS` if there is none.
 */
export function forwardedAddress(entry: string): string {
  const [, bracketed, plain] = /^"?(?:\[([^\]]*)\]|([^:]*))(?::\d{1,5})?"?$/.exec(entry.trim()) ?? []
  const address = bracketed ?? plain ?? entry.trim()
  return isIP(address) === 0 ? UNKNOWN_ADDRESS : address
}
