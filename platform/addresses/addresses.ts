import ipaddr from 'ipaddr.js'
import { SettingError, splitList } from '../settings/settings.ts'

/** Whether connecting to the address is allowed. False for text that is no address. */
export type AddressCheck = (address: string) => boolean

export class CidrError extends Error {
  override readonly name = 'CidrError'
}

type Address = ipaddr.IPv4 | ipaddr.IPv6
type Range = [Address, number]

/** Metadata services of clouds return credentials, so even an allowed range does not allow them. */
const metadataAddresses = [
  '169.254.169.254', // AWS, Google, Azure, Oracle and most others
  '169.254.169.253', // DNS service of AWS
  '169.254.169.123', // time service of AWS
  '169.254.170.2', // AWS ECS: credentials of a task
  '169.254.170.23', // AWS EKS: credentials of a pod
  '169.254.0.23', // Tencent
  '169.254.10.10', // Tencent
  '100.100.100.200', // Alibaba
  '100.100.2.136', // DNS service of Alibaba
  '100.100.2.138', // DNS service of Alibaba
  '192.0.0.192', // Oracle Cloud Classic
  '168.63.129.16', // Azure: services of the host
  'fd00:ec2::254', // AWS
  'fd00:ec2::253', // DNS service of AWS
  'fd00:ec2::123', // time service of AWS
  'fd00:ec2::23', // AWS EKS
  'fd20:ce::254', // Google
  'fd00:42::42', // Scaleway
].map((address) => canonical(ipaddr.parse(address)))

/** Ranges inside 2000::/3 (global unicast) that are not public. */
const specialRangesV6 = ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20'].map((cidr) =>
  ipaddr.IPv6.parseCIDR(cidr),
)
const globalUnicastV6 = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * Creates the check for destinations (contract, section 5). It allows public addresses and `allowedCidrs`, but never
 * the metadata service of a cloud. IPv6 addresses that contain an IPv4 address (mapped, translated, tunnelled) do
 * not count as public. An address with a zone is never allowed. Errors: `CidrError`.
 */
export function createAddressCheck({ allowedCidrs }: { allowedCidrs: string[] }): AddressCheck {
  const allowed = allowedCidrs.map(parseCidr)
  const metadata = new Set(metadataAddresses)

  return (text) => {
    const address = parseAddress(text)
    if (address === undefined || metadata.has(canonical(address))) return false
    if (isPublic(address)) return true
    if (embeddedV4(address).some((inner) => metadata.has(canonical(inner)))) return false
    return allowed.some((range) => isWithin(address, range))
  }
}

/** Creates the address check for a value of the setting. Errors: `SettingError`. */
export function parseAllowedCidrs(list: string): AddressCheck {
  try {
    return createAddressCheck({ allowedCidrs: splitList(list) })
  } catch (error) {
    if (!(error instanceof CidrError)) throw error
    throw new SettingError('DELIVERY_ALLOWED_CIDRS must be address ranges like 10.1.0.0/16, separated by commas')
  }
}

/** Parses an address. Accepts only the notation of parsed URLs and of DNS answers. */
function parseAddress(text: string): Address | undefined {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text)
  if (text.includes('%') || !ipaddr.IPv6.isValid(text)) return undefined
  return ipaddr.IPv6.parse(text)
}

function isPublic(address: Address) {
  if (isV4(address)) return address.range() === 'unicast'
  return isWithin(address, globalUnicastV6) && !specialRangesV6.some((range) => isWithin(address, range))
}

/** Returns IPv4 addresses that an IPv6 address may embed: its last 32 bits, and the bits after a 6to4 prefix. */
function embeddedV4(address: Address) {
  if (isV4(address)) return []
  const bytes = address.toByteArray()
  return [bytes.slice(12), bytes.slice(2, 6)].map((octets) => new ipaddr.IPv4(octets))
}

function parseCidr(text: string): Range {
  const [base = '', bits = '', ...more] = text.split('/')
  const address = parseAddress(base)
  const length = /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN
  if (address === undefined || more.length > 0 || !(length <= (isV4(address) ? 32 : 128))) {
    throw new CidrError(`${JSON.stringify(text)} is not an address range like 10.0.0.0/8 or fd00::/8`)
  }
  const network = isV4(address) ? ipaddr.IPv4.networkAddressFromCIDR(text) : ipaddr.IPv6.networkAddressFromCIDR(text)
  if (canonical(network) !== canonical(address)) {
    throw new CidrError(`${JSON.stringify(text)} has host bits set; use ${network}/${length}`)
  }
  return [address, length]
}

function isWithin(address: Address, [base, bits]: Range) {
  if (isV4(address)) return isV4(base) && address.match(base, bits)
  return !isV4(base) && address.match(base, bits)
}

function isV4(address: Address): address is ipaddr.IPv4 {
  return address.kind() === 'ipv4'
}

function canonical(address: Address) {
  return address.toByteArray().join('.')
}
