import { type ConnectError, createClient } from '@connectrpc/connect'
import { createConnectTransport as createWebTransport } from '@connectrpc/connect-web'
import { decodeJwt } from 'jose'
import { beforeAll, describe, expect, it } from 'vitest'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { runAdmin } from '../../admin/run-admin.ts'
import { operatorScopes } from '../../core/workspaces/workspace-sessions.ts'
import { useLocalStack } from '../support/local-stack.ts'
import { signWorkspaceSession } from '../support/workspace-session.ts'

const LIST = '/rpc/service.messaging.v1.MessagingService/ListConversations'
const WATCH = '/rpc/service.messaging.v1.MessagingService/WatchConversations'
let url: string
const stack = useLocalStack({ env: { RATE_LIMIT_FACTOR: '100' } })
beforeAll(async () => {
  url = stack.gateways[0]!.url
})

async function newLink(): Promise<string> {
  const output: string[] = []
  const args = ['console-link', '--gateway', url, '--json']
  const io = { env: { DATA_DIR: stack.dataDir, CORE_URL: stack.cores[0]!.url }, printError: console.error }
  expect(await runAdmin({ ...io, args, print: (text) => void output.push(text) })).toBe(0)
  const { link } = JSON.parse(output.join(''))
  expect(link).toMatch(new RegExp(`^${url}/console/#sign-in=[\\w-]{43}$`))
  return new URL(link).hash.slice('#sign-in='.length)
}

type Headers = Record<string, string | undefined>

/** Sends a request as a page of the console does. A header that is undefined is not sent. */
function post(path: string, { body, headers = {} }: { body?: unknown; headers?: Headers } = {}): Promise<Response> {
  const all: Headers = {
    origin: url,
    'sec-fetch-site': 'same-origin',
    'x-service-console': '1',
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...headers,
  }
  const sent = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return fetch(url + path, { method: 'POST', headers: sent, ...(body !== undefined && { body: JSON.stringify(body) }) })
}

const signIn = (link: string, headers: Headers = {}) =>
  post('/console/session/sign-in', { body: { link, displayName: 'Ada' }, headers })
const cookieOf = (answer: Response) => answer.headers.getSetCookie()[0]!.split(';')[0]!
const list = (cookie: string, headers: Headers = {}) => post(LIST, { body: {}, headers: { cookie, ...headers } })

async function newCookie(headers: Headers = {}) {
  const answer = await signIn(await newLink(), headers)
  expect(answer.status).toBe(200)
  return cookieOf(answer)
}

describe('signing in to the console', () => {
  it('with a link sets a cookie that scripts and other sites cannot use', async () => {
    const link = await newLink()
    const answers = await Promise.all([signIn(link), signIn(link), signIn(link)])
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 401, 401])
    const answer = answers.find(({ status }) => status === 200)!
    const [cookie, ...others] = answer.headers.getSetCookie()
    expect(others).toEqual([])
    expect(cookie).toMatch(
      new RegExp(`^service_console_${new URL(url).port}=[\\w-]{43}; Path=/; Max-Age=\\d+; HttpOnly; SameSite=Strict$`),
    )
    expect(answer.headers.get('cache-control')).toBe('no-store')
    const session = await answer.json()
    expect(session).toMatchObject({ workspaceId: 'ws_demo', operator: 'demo', displayName: 'Ada' })
    expect(JSON.stringify(session)).not.toContain(cookieOf(answer).split('=')[1])
    expect((await list(cookieOf(answer))).status).toBe(200)
    expect(await (await post('/console/session/current', { headers: { cookie: cookieOf(answer) } })).json()).toEqual(
      session,
    )
  })

  it('over https sets a cookie for https and this host only', async () => {
    const origin = url.replace('http:', 'https:')
    const answer = await signIn(await newLink(), { origin })
    expect(answer.headers.getSetCookie()[0]).toMatch(/^__Host-service_console=[\w-]{43}; Path=\/; .*; Secure$/)
    expect((await list(cookieOf(answer), { origin })).status).toBe(200)
    // Over https, a cookie that was set over http is not accepted. Another host of the domain may have set it.
    const planted = await newCookie()
    expect((await list(planted, { origin })).status).toBe(401)
  })

  it('sets a cookie for a workspace session, and refuses a service token or a forged session', async () => {
    const body = (token: string) => ({ body: { token, displayName: 'Ada' } })
    const answer = await post('/console/session/sign-in', body(stack.demo.workspaceSession))
    expect(await answer.json()).toMatchObject({ operator: 'operator_demo' })
    expect((await list(cookieOf(answer))).status).toBe(200)
    const forged = await signWorkspaceSession({ key: new Uint8Array(32).fill(9) })
    for (const token of [stack.demo.serviceToken, forged, 'a.b.c', ''])
      expect((await post('/console/session/sign-in', body(token))).status).toBe(401)
  })

  it('requires a name, and accepts no other fields', async () => {
    const link = await newLink()
    for (const body of [{ link }, { link, displayName: '' }, { link, displayName: 'A', scopes: ['leads:read'] }, []])
      expect((await post('/console/session/sign-in', { body })).status).toBe(400)
    expect((await signIn(link)).status).toBe(200)
  })

  it('gives the browser a new secret, and invalidates its earlier secret', async () => {
    const planted = await newCookie()
    const answer = await signIn(await newLink(), { cookie: planted })
    expect(cookieOf(answer)).not.toBe(planted)
    expect((await list(planted)).status).toBe(401)
    const chosen = `${planted.split('=')[0]}=${'x'.repeat(43)}`
    expect(cookieOf(await signIn(await newLink(), { cookie: chosen }))).not.toBe(chosen)
    expect((await list(chosen)).status).toBe(401)
  })
})

const foreign: [string, Headers][] = [
  ['a form or a simple request', { 'x-service-console': undefined }],
  ['a fetch of another site', { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }],
  ['a fetch of another site in an old browser', { origin: 'https://evil.example', 'sec-fetch-site': undefined }],
  ['a page of another port', { origin: 'http://127.0.0.1:1', 'sec-fetch-site': 'same-site' }],
  ['a sandboxed frame', { origin: 'null', 'sec-fetch-site': 'cross-site' }],
  ['a navigation', { origin: undefined, 'sec-fetch-site': 'none' }],
  ['a request without an origin', { origin: undefined, 'sec-fetch-site': undefined }],
]

describe.each(foreign)('%s', (_, headers) => {
  it('cannot use the cookie of the console', async () => {
    const cookie = await newCookie()
    const link = await newLink()
    const before = await stack.operator().messaging.listConversations({ workspaceId: 'ws_demo' })
    const answers = [
      await list(cookie, headers),
      await post(WATCH, { body: {}, headers: { cookie, ...headers } }),
      await post('/console/session/current', { headers: { cookie, ...headers } }),
      await post('/console/session/sign-out', { headers: { cookie, ...headers } }),
      await signIn(link, { cookie, ...headers }),
    ]
    expect(answers.map(({ status }) => status)).toEqual([403, 403, 403, 403, 403])
    expect(answers.flatMap((answer) => answer.headers.getSetCookie())).toEqual([])
    expect((await list(cookie)).status).toBe(200)
    expect((await signIn(link)).status).toBe(200)
    expect(await stack.operator().messaging.listConversations({ workspaceId: 'ws_demo' })).toEqual(before)
  })
})

describe('the cookie of the console', () => {
  it('is ignored by the public API, and cannot be sent as a token', async () => {
    const cookie = await newCookie()
    const secret = cookie.split('=')[1]!
    for (const authorization of [`Console ${secret}`, `Bearer ${secret}`])
      expect((await post(LIST, { body: {}, headers: { authorization } })).status).toBe(401)
    const visitor = await post('/api/integrations/v1/widget/messages', {
      body: { clientOperationId: 'op-1', body: 'Hello', contentType: 'text' },
      headers: { cookie, origin: stack.demo.origin, 'x-service-widget-version': '1.0', 'idempotency-key': 'op-1' },
    })
    expect(await visitor.json()).toMatchObject({ code: 'GrantMissing' })
    const lead = await post('/api/leads/lead_1/delivery-attempts', { body: {}, headers: { cookie } })
    expect(lead.status).toBe(401)
  })

  it('is deleted by a sign-out, which ends running streams and refuses later calls', async () => {
    const cookie = await newCookie()
    const headers = { cookie, 'content-type': 'application/connect+json' }
    const frame = Buffer.from([0, 0, 0, 0, 2, 0x7b, 0x7d])
    const stream = await fetch(url + WATCH, {
      method: 'POST',
      headers: { ...headers, origin: url, 'x-service-console': '1' },
      body: frame,
    })
    const text = stream.text()
    const running = Array.from({ length: 20 }, () => list(cookie))
    const out = await post('/console/session/sign-out', { headers: { cookie } })
    expect([out.status, out.headers.getSetCookie()[0]]).toEqual([204, expect.stringMatching(/=; Path=\/; Max-Age=0;/)])
    for (const { status } of await Promise.all(running)) expect([200, 401]).toContain(status)
    expect((await list(cookie)).status).toBe(401)
    expect(await text).toContain('"code":"unauthenticated"')
    expect((await post('/console/session/current', { headers: { cookie } })).status).toBe(204)
    expect((await post('/console/session/current')).status).toBe(204)
  })
})

describe('the demo’s workspace session', () => {
  it('has every operator scope for the demo workspace and an expiry', () => {
    const { scope, wid, exp, aud } = decodeJwt(stack.demo.workspaceSession)
    expect(new Set(String(scope).split(' '))).toEqual(operatorScopes)
    expect([wid, aud]).toEqual([stack.demo.workspaceId, 'service.workspace'])
    expect(exp).toBeGreaterThan(Date.now() / 1000)
  })

  it('gives the console access to the cores through the gateway', async () => {
    const headers = { authorization: `Bearer ${stack.demo.workspaceSession}` }
    const client = createClient(MessagingService, createWebTransport({ baseUrl: `${url}/rpc` }))
    expect(await client.listConversations({}, { headers })).toMatchObject({ conversations: [] })
    const other = client.listConversations({ workspaceId: 'ws_other' }, { headers })
    expect(await other.catch((error: ConnectError) => error.rawMessage)).toBe('NotFound')
    const leave = new AbortController()
    const frames = client.watchConversations({}, { headers, signal: leave.signal })[Symbol.asyncIterator]()
    expect((await frames.next()).value?.frame.case).toBe('ready')
    leave.abort()
  })
})
