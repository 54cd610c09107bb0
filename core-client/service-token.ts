import { Code } from '@connectrpc/connect'

/** Does not check the signature. Returns undefined if the text is no token. `expiresAt` is infinite without an end. */
export function readServiceToken(token: string) {
  try {
    const { sub, scope, exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))
    if (typeof sub !== 'string' || typeof scope !== 'string') return undefined
    const expiresAt = typeof exp === 'number' ? exp * 1000 : Number.POSITIVE_INFINITY
    return { subject: sub, scopes: scope.split(' '), expiresAt }
  } catch {
    return undefined
  }
}

/** Says in one line why the cores refuse a token, and what to do; undefined for other failures. */
export function tokenFault(setting: string, token: string, scope: string, code: Code, now = Date.now()) {
  if (code !== Code.Unauthenticated && code !== Code.PermissionDenied) return undefined
  const facts = readServiceToken(token)
  const renew = 'create another with `npm run make -- secrets --renew-tokens` or `npm run make -- token`'
  if (facts === undefined) return `${setting} is not a service token; ${renew}`
  const whose = `${setting} (subject ${JSON.stringify(facts.subject)})`
  if (facts.expiresAt <= now) return `${whose} expired on ${new Date(facts.expiresAt).toISOString()}; ${renew}`
  if (!facts.scopes.includes(scope))
    return `${whose} lacks the scope ${scope}: it has ${facts.scopes.join(' ')}; ${renew}`
  return `${whose} is refused: it was changed, or the SECRET_KEYS of the cores lack its key; ${renew}`
}
