const hostLabel = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/
const subdomainLabel = /^[a-z0-9_-]{1,63}$/

/** Accepts an origin in canonical form, and a wildcard before at least two labels. */
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

/** Returns all entries that allow the origin; none if it is not that of a web page. */
export function entriesAllowing(origin: string): string[] {
  if (canonicalOrigin(origin) !== origin) return []
  const entries = [origin]
  const { protocol, hostname, port } = new URL(origin)
  if (protocol === 'https:') {
    const labels = hostname.split('.')
    // A wildcard stands for one or more valid labels.
    for (let cut = 1; cut < labels.length && subdomainLabel.test(labels[cut - 1]!); cut += 1) {
      entries.push(`https://*.${labels.slice(cut).join('.')}${port === '' ? '' : `:${port}`}`)
    }
  }
  return entries
}

export function isOriginAllowed(origin: string, entries: readonly string[]): boolean {
  return entriesAllowing(origin).some((entry) => entries.includes(entry))
}

/** Returns the origin in the form that browsers send; undefined for other texts, also for wildcards. */
function canonicalOrigin(text: string) {
  if (text.length > 512 || text.includes('*')) return undefined
  const parsed = URL.parse(text)
  if (parsed?.protocol !== 'http:' && parsed?.protocol !== 'https:') return undefined
  // The URL parser accepts `https://.shop.example` and `https://shop..example`.
  return parsed.hostname.split('.').every(Boolean) ? parsed.origin : undefined
}
