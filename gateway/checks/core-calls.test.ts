import { describe, expect, test } from 'vitest'
import { message, startTestGateway, type TestGateway } from '../test/test-gateway.ts'

const create = { publicSiteKey: 'pk_demo', clientInstanceId: 'browser-1' }
const page = { url: 'https://shop.example/' }

/**
 * Makes a call. Returns its status, followed by the methods that the gateway called on the core.
 * Omits `checkOrigin`, because its answer is cached for all visitors of a site.
 */
async function callsOf({ call, core }: TestGateway, ...args: Parameters<TestGateway['call']>) {
  const before = core.calls.length
  const { status } = await call(...args)
  const methods = core.calls.slice(before).map(({ method }) => method)
  return [status, ...methods.filter((method) => method !== 'checkOrigin')]
}

describe('a request of a visitor', () => {
  test('causes one call to a core, even long after its grant was authorized', async () => {
    const gateway = await startTestGateway()
    expect((await gateway.call('GET', '/messages')).status).toBe(200)
    for (let minute = 0; minute < 3; minute += 1) {
      gateway.clock.advance(4_000)
      expect(await callsOf(gateway, 'POST', '/context/page', { body: page })).toEqual([204, 'reportPageContext'])
      expect(await callsOf(gateway, 'POST', '/messages', { body: message() })).toEqual([202, 'sendVisitorMessages'])
    }
    const assertion = { assertion: 'grant-1' }
    expect(await callsOf(gateway, 'POST', '/sessions/identify', { body: assertion })).toEqual([200, 'identifyVisitor'])
  })

  test('causes one call to a core with a grant that was just created or renewed', async () => {
    const gateway = await startTestGateway()
    expect((await gateway.call('POST', '/sessions', { body: create })).status).toBe(201)
    expect(await callsOf(gateway, 'GET', '/messages')).toEqual([200, 'listVisitorMessages'])
    const renewal = { sessionId: 'ses_grant-1', renewalToken: 'r' }
    expect(await callsOf(gateway, 'POST', '/sessions/renew', { body: renewal })).toEqual([200, 'renewSession'])
    expect(await callsOf(gateway, 'GET', '/messages')).toEqual([200, 'listVisitorMessages'])
  })

  test('is rejected by the called core method if its session has ended, and its grant is removed from the cache', async () => {
    const gateway = await startTestGateway()
    await gateway.call('GET', '/messages')
    gateway.core.grants.set('grant-1', 'SessionRevoked')
    gateway.clock.advance(60_000)
    expect(await callsOf(gateway, 'GET', '/messages')).toEqual([403, 'listVisitorMessages'])
    expect(await callsOf(gateway, 'GET', '/messages')).toEqual([403, 'authorizeGrant'])
  })

  test('gets SessionRevoked for an invalid body if its session was revoked after the grant was cached', async () => {
    const gateway = await startTestGateway()
    await gateway.call('GET', '/messages')
    gateway.core.grants.set('grant-1', 'SessionRevoked')
    gateway.clock.advance(60_000)
    const answer = await gateway.call('POST', '/messages', { body: '{' })
    expect(await answer.json()).toMatchObject({ code: 'SessionRevoked' })
  })
})

describe('a route that needs a capability', () => {
  const retry = (gateway: TestGateway, body: unknown = message()) =>
    callsOf(gateway, 'POST', '/messages/op-1/retry', { body })

  test('causes one call to a core if the cached authorization has the capability', async () => {
    const gateway = await startTestGateway()
    gateway.core.capabilities = { messageRetryRoute: true }
    await gateway.call('GET', '/messages')
    gateway.clock.advance(60_000)
    expect(await retry(gateway)).toEqual([202, 'sendVisitorMessages'])
  })

  test('answers RouteNotAdvertised to an invalid body if the capability was disabled after the grant was cached', async () => {
    const gateway = await startTestGateway()
    gateway.core.capabilities = { messageRetryRoute: true }
    for (const body of [{ fields: 7 }, '{']) {
      gateway.core.capabilities = { messageRetryRoute: true }
      await gateway.call('POST', '/messages', { body: '{' })
      gateway.clock.advance(1_000)
      gateway.core.capabilities = { messageRetryRoute: false }
      expect(await retry(gateway, body)).toEqual([404, 'authorizeGrant'])
    }
  })

  test('answers RouteNotAdvertised to an invalid decision on a request, and lets a core answer a valid one', async () => {
    const gateway = await startTestGateway()
    gateway.core.capabilities = {}
    const paths = [
      ['/commands/navigation/cmd_1/acknowledgements', { outcome: 'completed' }],
      ['/commands/screenshots/cmd_1/acknowledgements', { consent: 'granted' }],
    ] as const
    for (const [path, body] of paths) {
      for (const invalid of [{ headers: { 'idempotency-key': null }, body }, { body: { unknown: 1 } }])
        expect(await (await gateway.call('POST', path, invalid)).json()).toMatchObject({ code: 'RouteNotAdvertised' })
      expect((await gateway.call('POST', path, { body })).status).toBe(200)
    }
  })

  test('accepts the next request if the capability was enabled after the grant was cached', async () => {
    const gateway = await startTestGateway()
    await gateway.call('GET', '/messages')
    gateway.clock.advance(1_000)
    gateway.core.capabilities = { messageRetryRoute: true }
    expect(await retry(gateway)).toEqual([202, 'authorizeGrant', 'sendVisitorMessages'])
  })

  test('asks a core for the capabilities if the session was just created', async () => {
    const gateway = await startTestGateway()
    gateway.core.capabilities = { messageRetryRoute: true }
    await gateway.call('POST', '/sessions', { body: create })
    expect(await retry(gateway)).toEqual([202, 'authorizeGrant', 'sendVisitorMessages'])
  })
})
