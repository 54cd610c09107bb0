/**
 * Origins of pages and the entries that allow them. An entry is an origin (scheme, host, port) or
 * `https://*.example.com`, which matches one or more labels in front (contract, section 1).
 */

const hostLabel = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/

/**
 * Whether an entry is valid: an origin in canonical form, or a wildcard before at least two labels.
 */
export function isOriginEntry(entry: string): boolean {
  const wildcard = entry.match(/^https:\/\/\*\.([^/:]+)(:\d+)?$/)
  if (!wildcard) return canonicalOrigin(entry) === entry
  const [, host = '', port = ''] = wildcard
  const labels = host.split('.')
  return (
    labels.length >= 2 &&
    labels.every((label) => hostLabel.test(label)) &&
    canonicalOrigin(`https://${host}${port}`) === `https://${host}${port}`
  )
}

/** All entries that allow the origin; empty when it is not the origin of a web page. */
export function entriesAllowing(origin: string): string[] {
  if (canonicalOrigin(origin) !== origin) return []
  const entries = [origin]
  const { protocol, hostname, port } = new URL(origin)
  if (protocol === 'https:') {
    const labels = hostname.split('.')
    for (let cut = 1; cut < labels.length; cut += 1) {
      entries.push(`https://*.${labels.slice(cut).join('.')}${port === '' ? '' : `:${port}`}`)
    }
  }
  return entries
}

export function isOriginAllowed(origin: string, entries: readonly string[]): boolean {
  return entriesAllowing(origin).some((entry) => entries.includes(entry))
}

/** The origin in the form that browsers send; undefined for anything else, including wildcards. */
function canonicalOrigin(text: string): string | undefined {
  if (text.length > 512 || text.includes('*')) return undefined
  const parsed = URL.parse(text)
  return parsed && (parsed.protocol === 'http:' || parsed.protocol === 'https:') ? parsed.origin : undefined
}
