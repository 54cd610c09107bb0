import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { decodeJwt, decodeProtectedHeader, exportJWK, generateKeyPair, SignJWT } from 'jose'
import Provider, { type Configuration } from 'oidc-provider'
import { listen } from './listen.ts'

/** Claims about a person that the provider returns. */
export interface Account {
  name?: string
  groups?: string[]
  workspace_id?: string
}

/**
 * Starts an OpenID Connect provider on a free port. Its sign-in page asks for no
 * password. It signs in the person that `signInAs` has set. `serve` sets its clients.
 */
export async function startIdentityProvider() {
  const accounts = new Map<string, Account>()
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  const jwks = { keys: [{ ...(await exportJWK(privateKey)), kid: 'tests', use: 'sig' }] }
  const state = {
    signInAs: 'ada',
    isDown: false,
    provider: undefined as Provider | undefined,
    /** Claims that replace those of ID tokens. The provider's own key signs them. */
    idTokenClaims: undefined as Record<string, unknown> | undefined,
  }
  let handle: ReturnType<Provider['callback']> | undefined

  async function answer(request: IncomingMessage, response: ServerResponse) {
    if (state.isDown || !state.provider) return void request.socket.destroy()
    if (request.url?.startsWith('/interaction/'))
      return state.provider.interactionFinished(request, response, { login: { accountId: state.signInAs } })
    if (request.url === '/token' && state.idTokenClaims) changeIdToken(response, state.idTokenClaims)
    return handle?.(request, response)
  }

  /** Replaces claims of the ID token in a response before it is sent. */
  function changeIdToken(response: ServerResponse, claims: Record<string, unknown>) {
    const end = response.end.bind(response) as (body: string) => ServerResponse
    response.end = ((body: string | Buffer) => {
      const answer = JSON.parse(String(body))
      void (async () => {
        if (answer.id_token)
          answer.id_token = await new SignJWT({ ...decodeJwt(answer.id_token), ...claims })
            .setProtectedHeader({ alg: 'RS256', ...decodeProtectedHeader(answer.id_token) })
            .sign(privateKey)
        const changed = JSON.stringify(answer)
        response.setHeader('Content-Length', Buffer.byteLength(changed))
        end(changed)
      })()
      return response
    }) as typeof response.end
  }

  const server = createServer((request, response) => void answer(request, response))
  const { url: issuer } = await listen(server)

  return {
    issuer,
    accounts,
    state,
    serve(redirectUri: string, change: Configuration = {}) {
      state.idTokenClaims = undefined
      state.provider = new Provider(issuer, {
        jwks,
        clients: [
          {
            client_id: 'console',
            client_secret: 'client-secret-of-the-tests',
            token_endpoint_auth_method: 'client_secret_post',
            redirect_uris: [redirectUri],
            grant_types: ['authorization_code', 'refresh_token'],
          },
          { client_id: 'other', client_secret: 'other-secret', redirect_uris: [redirectUri] },
        ],
        claims: { openid: ['sub'], profile: ['name'], groups: ['groups', 'workspace_id'] },
        cookies: { keys: ['cookie-key-of-the-tests'] },
        features: { devInteractions: { enabled: false } },
        pkce: { required: () => true },
        interactions: { url: (_, { uid }) => `/interaction/${uid}` },
        findAccount: (_, sub) =>
          accounts.has(sub) ? { accountId: sub, claims: () => ({ sub, ...accounts.get(sub) }) } : undefined,
        issueRefreshToken: async () => true,
        // The person consents to everything.
        async loadExistingGrant({ oidc }) {
          const grant = new oidc.provider.Grant({
            clientId: oidc.client!.clientId,
            accountId: oidc.session!.accountId!,
          })
          grant.addOIDCScope('openid profile groups')
          await grant.save()
          return grant
        },
        ...change,
      })
      handle = state.provider.callback()
    },
  }
}

/** A browser without pages: follows redirects and keeps cookies. */
export function createCookieJar() {
  const cookies = new Map<string, Map<string, string>>()

  async function request(address: string, init: RequestInit = {}): Promise<Response> {
    const { host } = new URL(address)
    const own = cookies.get(host) ?? new Map<string, string>()
    cookies.set(host, own)
    const cookie = [...own].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await fetch(address, { ...init, redirect: 'manual', headers: { cookie, ...init.headers } })
    for (const line of answer.headers.getSetCookie()) {
      const [pair = '', ...attributes] = line.split('; ')
      const [name = '', value = ''] = pair.split(/=(.*)/)
      const isDeleted = attributes.includes('Max-Age=0') || /expires=Thu, 01 Jan 1970/i.test(line)
      if (isDeleted) own.delete(name)
      else own.set(name, value)
    }
    return answer
  }

  return {
    request,
    cookies,
    /** Follows redirects until one leads to `stop`, or none is left. Returns the last address. */
    async follow(address: string, stop: string): Promise<string> {
      for (let hops = 0, next = address; hops < 10; hops += 1) {
        if (next.startsWith(stop)) return next
        const location = (await request(next)).headers.get('location')
        if (location === null) return next
        next = new URL(location, next).href
      }
      throw new Error('too many redirects')
    },
  }
}
