/**
 * Marker that tests put into data that must not be logged: message bodies, names, form fields, page
 * URLs, assertions and images.
 */
export const planted = 'PLANTED-f2c1'

/** Patterns of data that must not be in any log, error or URL (specification, section 5). */
const kinds: [name: string, pattern: RegExp][] = [
  ['a planted word', new RegExp(planted)],
  ['a planted word in base64', new RegExp(Buffer.from(planted).toString('base64').slice(0, 12))],
  ['a token (JWS)', /eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+/],
  ['a secret of a subscription', /whsec_[\w+/=]{8,}/],
  ['a signature', /sha256=[0-9a-f]{16,}|v1,[\w+/]{20,}=/],
  ['a bearer', /bearer +[\w-]{8,}/i],
  ['a renewal token', /\bk\d+\.[\w-]{43}\b/],
  ['a secret key', /(?<![\w-])[\w-]{43}(?![\w-])/],
  ['a picture', /\x89PNG|iVBORw0KGgo/],
]

/** Internal details that no response may contain (specification, section 7). */
export const internals = /\n\s+at .+:\d+:\d+|node_modules|mongodb|ECONN[A-Z]|E11000|ConnectError|\.ts:\d|[a-z]Error: /

/** Words that no response may contain unless it repeats them from hostile input. */
export const internalWords = /\bat .+:\d+:\d+|mongo|ECONN|127\.0\.0\.1:\d+|\.ts\b|grpc|kid|secret/i

/** Lists the secrets in a text. Each entry has the kind and the preceding text, but not the secret itself. */
export function leaksIn(text: string): string[] {
  return kinds.flatMap(([name, pattern]) => {
    const found = pattern.exec(text)
    return found === null
      ? []
      : [`${name} after ${JSON.stringify(text.slice(Math.max(0, found.index - 80), found.index))}`]
  })
}
