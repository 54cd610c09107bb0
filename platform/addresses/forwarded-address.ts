import { isIP } from 'node:net'

/** Stands for a client without a valid address. All such clients share the limits of one address. */
export const UNKNOWN_ADDRESS = 'unknown'

/**
 * Returns the address of an entry of `X-Forwarded-For`. Some proxies add a port: `192.0.2.7:4711`,
 * `[2001:db8::7]:4711`. Returns `UNKNOWN_ADDRESS` if the entry has no address.
 */
export function forwardedAddress(entry: string): string {
  const [, bracketed, plain] = /^"?(?:\[([^\]]*)\]|([^:]*))(?::\d{1,5})?"?$/.exec(entry.trim()) ?? []
  const address = bracketed ?? plain ?? entry.trim()
  return isIP(address) === 0 ? UNKNOWN_ADDRESS : address
}
