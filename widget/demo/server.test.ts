import { decodeProtectedHeader, jwtVerify } from 'jose'
import { beforeAll, describe, expect, it } from 'vitest'
import { listen } from '../../test/support/listen.ts'
import { createDemoSite } from './server.ts'

const identity = { kid: 'kid-1', secret: 'a-secret-that-stays-on-the-backend' }
let origin: string

/** Returns the origin of a new shop. */
async function startShop(options: Partial<Parameters<typeof createDemoSite>[0]> = {}) {
  const server = await createDemoSite({
    gatewayUrl: 'http://gateway.test:8080',
    siteKey: 'pk_test',
    identity,
    ...options,
  })
  return (await listen(server, 'localhost')).url
}

beforeAll(async () => {
  origin = await startShop()
})

/** Returns a function that sends requests like a browser, with the cookie and the `Origin` header. */
function visitor() {
  let cookie = ''
  return async (path: string, form?: Record<string, string>, headers: Record<string, string> = {}) => {
    const response = await fetch(origin + path, {
      method: form ? 'POST' : 'GET',
      headers: { cookie, ...(form && { origin }), ...headers },
      body: form && new URLSearchParams(form),
      redirect: 'manual',
    })
    cookie = response.headers.get('set-cookie')?.split(';')[0] ?? cookie
    return {
      status: response.status,
      location: response.headers.get('location'),
      headers: response.headers,
      text: await response.text(),
    }
  }
}

describe('the demo shop', () => {
  it.each(['/', '/lamps', '/account'])(
    'the demo shop serves %s with a strict content security policy and without the identity secret',
    async (path) => {
      const { status, headers, text } = await visitor()(path)
      expect(status).toBe(200)
      expect(text).toContain('data-site-key="pk_test" data-api-base-url="http://gateway.test:8080"')
      expect(text).not.toContain(identity.secret)
      expect(text).not.toMatch(/ style=|<style|<script>| on[a-z]+="/)
      const policy = headers.get('content-security-policy')
      expect(policy).toContain("default-src 'none'")
      expect(policy).toContain("require-trusted-types-for 'script'")
      expect(policy).not.toContain('unsafe')
    },
  )

  it.each(['/nothing', '/lamps/nothing', '//evil.example', '/scripts/../server.ts'])(
    'the demo shop answers 404 at %s',
    async (path) => expect((await visitor()(path)).status).toBe(404),
  )

  it('the demo shop answers 413 to a sign-in form with an oversized body', async () => {
    expect((await visitor()('/account/sign-in', { customer: 'x'.repeat(9_000) })).status).toBe(413)
  })
})

describe('identity assertions of the demo shop', () => {
  it('an identity assertion names the signed-in customer, follows the contract and is new on each request', async () => {
    const ask = visitor()
    expect((await ask('/account/sign-in', { customer: 'customer_1042' })).location).toBe('/account')
    expect((await ask('/account')).text).toContain('Hello, Ada.')
    const answer = await ask('/identity-assertion', {})
    expect(answer.headers.get('cache-control')).toBe('no-store')
    const { assertion } = JSON.parse(answer.text)
    expect(decodeProtectedHeader(assertion)).toEqual({
      alg: 'HS256',
      typ: 'service-visitor-identity+jwt',
      kid: 'kid-1',
    })
    const { payload } = await jwtVerify(assertion, new TextEncoder().encode(identity.secret), { audience: 'pk_test' })
    expect(payload).toMatchObject({ sub: 'customer_1042', name: 'Ada Berger', ctx: { orders: 2 } })
    expect(payload.exp! - payload.iat!).toBeLessThanOrEqual(300)
    const again = await jwtVerify(
      JSON.parse((await ask('/identity-assertion', {})).text).assertion,
      new TextEncoder().encode(identity.secret),
    )
    expect(again.payload.jti).not.toBe(payload.jti)
  })

  it('an identity assertion is not issued before sign-in, after sign-out or for an unknown cookie', async () => {
    const ask = visitor()
    expect((await ask('/identity-assertion', {})).status).toBe(204)
    await ask('/account/sign-in', { customer: 'customer_1107' })
    await ask('/account/sign-out', {})
    expect((await ask('/identity-assertion', {})).status).toBe(204)
    expect((await ask('/identity-assertion', {}, { cookie: 'shop_session=customer_1107' })).status).toBe(204)
    expect((await ask('/account/sign-in', { customer: 'nobody' })).status).toBe(303)
    expect((await ask('/identity-assertion', {})).status).toBe(204)
  })

  it('an identity assertion is issued only to POST requests from pages of the shop', async () => {
    const ask = visitor()
    await ask('/account/sign-in', { customer: 'customer_1042' })
    expect((await ask('/identity-assertion')).status).toBe(404)
    expect((await ask('/identity-assertion', {}, { origin: 'https://evil.example' })).status).toBe(403)
    expect((await ask('/identity-assertion', {}, { 'sec-fetch-site': 'cross-site' })).status).toBe(403)
    expect((await ask('/account/sign-out', {}, { 'sec-fetch-site': 'same-site' })).status).toBe(403)
    expect((await ask('/account')).text).toContain('Hello, Ada.')
  })

  it('an identity assertion is not issued for a cookie that was replaced when another customer signed in', async () => {
    const ask = visitor()
    const first = await ask('/account/sign-in', { customer: 'customer_1042' })
    const stolen = first.headers.get('set-cookie')!.split(';')[0]!
    expect(first.headers.get('set-cookie')).toMatch(/HttpOnly; SameSite=Lax/)
    await ask('/account/sign-in', { customer: 'customer_1107' })
    expect((await visitor()('/identity-assertion', {}, { cookie: stolen })).status).toBe(204)
  })

  it('the demo shop offers no identity assertions without an identity secret', async () => {
    const bare = await startShop({ identity: undefined })
    const page = await fetch(`${bare}/account`).then((response) => response.text())
    expect(page).not.toContain('data-signs-identity')
  })
})

describe('the event log of the workbench', () => {
  it('the event log hides credentials in payloads', async () => {
    const { createEventLog, lineOf } = await import('./site/scripts/event-log.js')
    const log = createEventLog({ now: () => new Date(0) })
    const session = {
      sessionId: 'ses_1',
      accessGrant: 'G',
      renewalToken: 'R',
      nested: [{ assertion: 'A', secret: 'S' }],
    }
    log.add('event', 'session.ready', { session })
    const line = lineOf(log.entries()[0]!)
    expect(line).toContain('ses_1')
    for (const credential of ['"G"', '"R"', '"A"', '"S"']) expect(line).not.toContain(credential)
  })

  it('the event log keeps the newest 400 entries', async () => {
    const { createEventLog } = await import('./site/scripts/event-log.js')
    const log = createEventLog({ now: () => new Date(0) })
    for (let count = 1; count <= 1_000; count += 1) log.add('page', `step ${count}`, {})
    expect(log.entries()).toHaveLength(400)
    expect(log.entries().at(-1)?.name).toBe('step 1000')
    log.clear()
    expect(log.entries()).toEqual([])
  })
})
