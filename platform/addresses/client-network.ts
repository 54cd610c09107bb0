import ipaddr from 'ipaddr.js'

/**
 * Returns the key under which limits count an address: the IPv4 address, or the /64 network of an
 * IPv6 address, because one client usually owns a whole /64.
 */
export function clientNetwork(address: string): string {
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  if (parsed.kind() === 'ipv4') return parsed.toString()
  const parts = (parsed as ipaddr.IPv6).parts.slice(0, 4)
  return `${parts.map((part) => part.toString(16)).join(':')}::/64`
}
