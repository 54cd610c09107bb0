import type { IncomingMessage, ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'

/** Returns the name of the console's cookie at an address. */
export const cookieName = (url: string) => `service_console_${new URL(url).port}`

/**
 * Serves the console's session routes as a gateway does. The value of the cookie is a session
 * token. The signature of the token is not verified. The link `good` works once.
 */
export function fakeSession(isRejecting: () => boolean) {
  const names = new Map<string, string>()
  let isLinkUsed = false

  const tokenOf = ({ headers }: IncomingMessage) =>
    isRejecting() ? undefined : /service_console_\d+=([^;]+)/.exec(headers.cookie ?? '')?.[1]

  function sessionOf(token: string) {
    const { sub, wid, exp, scope } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    if (exp * 1000 <= Date.now()) return undefined
    const displayName = names.get(token) ?? 'Ada'
    const expiresAt = new Date(exp * 1000).toISOString()
    return { id: token, workspaceId: wid, operator: sub, displayName, scopes: scope.split(' '), expiresAt }
  }

  async function answer(request: IncomingMessage, response: ServerResponse, linkToken: string) {
    const send = (status: number, body?: unknown, cookie?: string) => {
      const set = cookie !== undefined && `service_console_${new URL(`http://${request.headers.host}`).port}=${cookie}`
      const header = set ? { 'Set-Cookie': `${set}; Path=/; HttpOnly; SameSite=Strict` } : {}
      response.writeHead(status, { 'Content-Type': 'application/json', ...header })
      response.end(body === undefined ? undefined : JSON.stringify(body))
    }
    const token = tokenOf(request)
    if (request.url === '/console/session/sign-out') return send(204, undefined, '')
    if (request.url === '/console/session/current') {
      const session = token && sessionOf(token)
      return session ? send(200, session) : send(204)
    }
    if (request.url === '/console/session/options') return send(200, { provider: false, mail: false })
    if (request.url === '/console/session/link')
      return isLinkUsed ? send(401, {}) : send(200, { workspaceName: 'Shop', firstOwner: false, invitation: false })
    const { link, token: pasted, displayName } = (await json(request)) as Record<string, string>
    const isRefused = isRejecting() || (link === undefined ? !/^\S+\.\S+\.\S+$/.test(pasted ?? '') : isLinkUsed)
    if (isRefused) return send(401, {})
    if (link !== undefined) isLinkUsed = true
    const cookie = pasted ?? linkToken
    names.set(cookie, displayName ?? '')
    return send(200, sessionOf(cookie), cookie)
  }

  return { tokenOf, answer }
}
