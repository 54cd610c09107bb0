import { MongoClient } from 'mongodb'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createCookieJar, startIdentityProvider } from '../support/identity-provider.ts'
import { itLong, someOf } from '../support/is-long.ts'
import { type LocalStack, startLocalStack } from '../support/local-stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'

const database = testDatabase()
const client = new MongoClient(database.uri)
const LIST = '/rpc/service.messaging.v1.MessagingService/ListConversations'
const ASSIGN = '/rpc/service.messaging.v1.MessagingService/AssignAgent'
const WATCH = '/rpc/service.messaging.v1.MessagingService/WatchConversations'
let provider: Awaited<ReturnType<typeof startIdentityProvider>>
let stack: LocalStack
let url: string
let callback: string

beforeAll(async () => {
  provider = await startIdentityProvider()
  stack = await startLocalStack({
    database,
    env: {
      RATE_LIMIT_FACTOR: '100',
      OIDC_ISSUER: provider.issuer,
      OIDC_CLIENT_ID: 'console',
      OIDC_CLIENT_SECRET: 'client-secret-of-the-tests',
      OIDC_SCOPE: 'openid profile groups',
      OIDC_ROLES: 'agent=messages:read messages:write; reader=messages:read; admin=*',
    },
  })
  url = stack.gateways[0]!.url
  callback = `${url}/console/session/callback`
})
afterAll(() => client.close())
beforeEach(() => {
  provider.serve(callback)
  provider.state.signInAs = 'ada'
  provider.state.isDown = false
  provider.accounts.set('ada', { name: 'Ada L.', groups: ['agent', 'unknown'], workspace_id: 'ws_demo' })
})

const headers = () => ({ origin: url, 'x-service-console': '1' })

interface CurrentSession {
  scopes: string[]
  expiresAt: string
}

function newBrowser() {
  const jar = createCookieJar()
  const post = (path: string, body?: unknown) =>
    jar.request(url + path, {
      method: 'POST',
      headers: { ...headers(), ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  const begin = async (): Promise<string> =>
    ((await (await post('/console/session/provider')).json()) as { url: string }).url
  /** Signs in at the provider. Returns the address of the callback. */
  const authorize = async () => jar.follow(await begin(), callback)
  const redirectOf = async (address: string) => (await jar.request(address)).headers.get('location')
  return {
    jar,
    post,
    begin,
    authorize,
    redirectOf,
    signIn: async () => redirectOf(await authorize()),
    current: async () => {
      const answer = await post('/console/session/current')
      return answer.status === 204 ? undefined : ((await answer.json()) as CurrentSession)
    },
  }
}

/** Makes all sessions due for a check, instead of waiting for a minute. */
async function recheckNow() {
  const sessions = client.db(database.name).collection('consoleSessions')
  await sessions.updateMany({ provider: { $exists: true } }, { $set: { 'provider.recheckAt': new Date(0) } })
}

async function signedInSession() {
  const { provider: server } = provider.state
  const found = await client.db(database.name).collection('consoleSessions').findOne({ operator: 'ada' })
  return { server: server!, found }
}

describe('signing in at an OpenID Connect provider', () => {
  it('creates a session with the scopes of the operator’s roles; the authorization request has PKCE, state and nonce', async () => {
    const browser = newBrowser()
    expect(await (await browser.post('/console/session/options')).json()).toEqual({ provider: true, mail: false })
    const { searchParams } = new URL(await browser.begin())
    expect(Object.fromEntries(searchParams)).toMatchObject({
      client_id: 'console',
      redirect_uri: callback,
      response_type: 'code',
      code_challenge_method: 'S256',
      state: expect.stringMatching(/^[\w-]{43}$/),
      nonce: expect.stringMatching(/^[\w-]{43}$/),
    })
    expect(await browser.signIn()).toBe('/console/#signed-in')
    expect(await browser.current()).toMatchObject({
      workspaceId: 'ws_demo',
      operator: 'ada',
      displayName: 'Ada L.',
      scopes: ['messages:read', 'messages:write'],
    })
    expect((await browser.post(LIST, {})).status).toBe(200)
    expect((await browser.post('/rpc/service.workspace.v1.WorkspaceService/GetWorkspace', {})).status).toBe(403)
    const stored = JSON.stringify(await client.db(database.name).collection('consoleSessions').find().toArray())
    expect(stored).toContain('sealed')
    expect(await client.db(database.name).collection('signInAttempts').countDocuments()).toBe(1)
  })

  it('refuses a replayed callback, and a callback in a browser that did not begin the sign-in', async () => {
    const browser = newBrowser()
    const address = await browser.authorize()
    expect(await newBrowser().redirectOf(address)).toBe('/console/#sign-in-failed=refused')
    const victim = newBrowser()
    await victim.begin()
    expect(await victim.redirectOf(address)).toBe('/console/#sign-in-failed=refused')
    const before = new Map(browser.jar.cookies.get(new URL(url).host))
    expect(await browser.redirectOf(address)).toBe('/console/#signed-in')
    browser.jar.cookies.set(new URL(url).host, before)
    expect(await browser.redirectOf(address)).toBe('/console/#sign-in-failed=refused')
    expect(await browser.current()).toBeUndefined()
  })

  it('refuses a code that was used already, a forged state, and an error of the provider', async () => {
    const browser = newBrowser()
    const used = new URL(await browser.authorize()).searchParams.get('code')!
    await browser.redirectOf(`${callback}?${new URL(await browser.authorize()).searchParams}`)
    const fresh = new URL(await browser.authorize())
    const changed = (change: Record<string, string>) => {
      const address = new URL(fresh)
      for (const [name, value] of Object.entries(change)) address.searchParams.set(name, value)
      return address.href
    }
    expect(await browser.redirectOf(changed({ state: 'x'.repeat(43) }))).toBe('/console/#sign-in-failed=refused')
    // A code of another sign-in does not match the code verifier of this sign-in.
    const again = new URL(await browser.authorize())
    again.searchParams.set('code', used)
    expect(await browser.redirectOf(again.href)).toBe('/console/#sign-in-failed=refused')
    const denied = new URL(await browser.authorize())
    denied.searchParams.delete('code')
    denied.searchParams.set('error', 'access_denied')
    expect(await browser.redirectOf(denied.href)).toBe('/console/#sign-in-failed=refused')
  })

  it.each([
    ['for another audience', { aud: 'other' }],
    ['of another issuer', { iss: 'https://evil.example' }],
    ['with another nonce', { nonce: 'other' }],
    ['that expired longer ago than clocks may differ', { exp: Math.floor(Date.now() / 1000) - 31 }],
  ])('refuses an ID token %s', async (_, claims) => {
    const browser = newBrowser()
    const address = await browser.authorize()
    provider.state.idTokenClaims = claims
    expect(await browser.redirectOf(address)).toBe('/console/#sign-in-failed=refused')
    expect(await browser.current()).toBeUndefined()
  })

  it('accepts an ID token of a provider whose clock differs by 20 s', async () => {
    for (const seconds of [-20, 20]) {
      const browser = newBrowser()
      const address = await browser.authorize()
      const now = Math.floor(Date.now() / 1000)
      provider.state.idTokenClaims = { iat: now + seconds, exp: now + (seconds < 0 ? -20 : 60) }
      expect(await browser.redirectOf(address)).toBe('/console/#signed-in')
    }
  })

  it.each([
    ['no role', { name: 'Ada', workspace_id: 'ws_demo' }],
    ['only unknown roles', { name: 'Ada', workspace_id: 'ws_demo', groups: ['messages:read', 'toString'] }],
    ['no workspace', { name: 'Ada', groups: ['admin'] }],
    ['no name that visitors can see', { groups: ['admin'], workspace_id: 'ws_demo' }],
  ])('denies an operator with %s', async (_, account) => {
    provider.accounts.set('ada', account)
    expect(await newBrowser().signIn()).toBe('/console/#sign-in-failed=denied')
  })

  it('refuses an operator whose workspace does not exist, and reports an unreachable provider', async () => {
    provider.accounts.set('ada', { name: 'Ada', groups: ['admin'], workspace_id: 'ws_none' })
    expect(await newBrowser().signIn()).toBe('/console/#sign-in-failed=refused')
    const browser = newBrowser()
    const address = await browser.authorize()
    provider.state.isDown = true
    expect(await browser.redirectOf(address)).toBe('/console/#sign-in-failed=unavailable')
  })

  it('ends the session that the browser had before', async () => {
    const browser = newBrowser()
    await browser.signIn()
    const host = new URL(url).host
    const before = new Map(browser.jar.cookies.get(host))
    await browser.signIn()
    browser.jar.cookies.set(host, before)
    expect(await browser.current()).toBeUndefined()
  })
})

describe('a session of a provider', () => {
  itLong('loses a revoked scope, and its streams end', async () => {
    const browser = newBrowser()
    await browser.signIn()
    const stream = await browser.jar.request(url + WATCH, {
      method: 'POST',
      headers: { ...headers(), 'content-type': 'application/connect+json' },
      body: Buffer.from([0, 0, 0, 0, 2, 0x7b, 0x7d]),
    })
    const text = stream.text()
    provider.accounts.set('ada', { name: 'Ada B.', groups: ['reader'], workspace_id: 'ws_demo' })
    await recheckNow()
    await until('the new scopes', async () => (await browser.current())?.scopes.length === 1)
    expect(await browser.current()).toMatchObject({ displayName: 'Ada B.', scopes: ['messages:read'] })
    expect((await browser.post(LIST, {})).status).toBe(200)
    const assign = await browser.post(ASSIGN, { conversationId: 'cnv_1', agent: { displayName: 'Ada' } })
    expect(assign.status).toBe(403)
    expect(await text).toContain('"code":"unauthenticated"')
  })

  it.each(
    someOf(
      [
        ['has no role any more', { name: 'Ada', groups: [], workspace_id: 'ws_demo' }],
        ['moved to another workspace', { name: 'Ada', groups: ['admin'], workspace_id: 'ws_other' }],
      ],
      1,
    ),
  )('ends if the operator %s', async (_, account) => {
    const browser = newBrowser()
    await browser.signIn()
    provider.accounts.set('ada', account)
    await recheckNow()
    await until('the end', async () => (await browser.current()) === undefined)
    expect((await browser.post(LIST, {})).status).toBe(401)
  })

  itLong('ends if the operator signs out at the provider', async () => {
    await client.db(database.name).collection('consoleSessions').deleteMany({})
    const browser = newBrowser()
    await browser.signIn()
    const { server } = await signedInSession()
    await recheckNow()
    await until('a check', async () => (await signedInSession()).found!.provider.recheckAt > new Date())
    expect(await browser.current()).toBeDefined()
    const issuer = new URL(provider.issuer).host
    const cookie = browser.jar.cookies.get(issuer)!.get('_session')!
    await (await server.Session.find(cookie))!.destroy()
    await recheckNow()
    await until('the end', async () => (await browser.current()) === undefined)
  })

  it('lasts an hour if the provider issues no refresh token', async () => {
    provider.serve(callback, { issueRefreshToken: async () => false })
    const browser = newBrowser()
    await browser.signIn()
    const { expiresAt } = (await browser.current())!
    expect(Date.parse(expiresAt) - Date.now()).toBeLessThanOrEqual(3_600_000)
  })
})
