import { beforeEach, describe, expect, it } from 'vitest'
import type { ServiceClientOptions } from '../src/client/client-options.ts'
import { assertionOf } from './assertion-of.ts'
import { createClientHarness, fetchFromPage, until } from './client-harness.ts'
import { serverPerTest } from './server-per-test.ts'

const page = { url: 'http://shop.test/', title: 'Shop' }
const all = { identity: true, typing: true, pageContext: true, navigation: true, screenshots: true, offlineForm: true }
const config: { capabilities: Partial<typeof all>; forms: object } = {
  capabilities: all,
  forms: { offline: { fields: [] } },
}
const { clock, server } = serverPerTest(config)
beforeEach(() => {
  config.capabilities = all
})

async function started(options: Partial<ServiceClientOptions> = {}) {
  const supports = { navigation: true, screenshots: true }
  const harness = createClientHarness(server, 'pk_friendly', {
    clock,
    options: { pageContext: () => page, supports, ...options },
  })
  await harness.started()
  return harness
}
const turnOff = (name: keyof typeof all) => {
  config.capabilities = { ...all, [name]: false }
}
const refused = { status: 404, code: 'RouteNotAdvertised' }
const sent = (route: string) => server.seen(route).map(({ body }) => body)
const configReads = () => server.requests.filter(({ path }) => path.startsWith('/config/')).length

it('the page of the host is sent without query, fragment and path of the referrer', async () => {
  const url = 'https://shop.test/cart?token=abc#pay'
  const harness = await started({ pageContext: () => ({ url, referrer: 'https://mail.test/inbox?id=1' }) })
  harness.client.sendMessage('Hello')
  await until(() => harness.states().join() === 'queued')
  const minimal = { url: 'https://shop.test/cart', referrer: 'https://mail.test' }
  for (const route of ['POST /sessions', 'POST /messages'])
    expect(sent(route).map((body) => body?.pageContext)).toEqual([minimal])
})

describe('with the capability `pageContext` off', () => {
  it('if the capability `pageContext` is off, no request contains the page, not even the first one', async () => {
    turnOff('pageContext')
    const { client } = await started()
    client.sendMessage('Hello')
    client.updatePageContext(page)
    clock.advance(5_000)
    await until(() => client.messages()[0]?.deliveryStatus === 'queued')
    for (const { body } of server.requests) expect(body?.pageContext).toBeUndefined()
    expect(sent('POST /context/page')).toEqual([])
  })

  it('the client no longer sends the page after the service has refused a page report', async () => {
    const { client } = await started()
    expect(sent('POST /sessions')).toMatchObject([{ pageContext: page }])
    turnOff('pageContext')
    server.features.failNext('/context/page', refused)
    client.updatePageContext({ url: 'http://shop.test/a' })
    clock.advance(500)
    await until(() => client.config()?.capabilities.pageContext === false)
    client.sendMessage('Hello')
    client.updatePageContext({ url: 'http://shop.test/b' })
    clock.advance(5_000)
    await until(() => client.messages()[0]?.deliveryStatus === 'queued')
    expect(sent('POST /messages')[0]?.pageContext).toBeUndefined()
    expect(sent('POST /context/page')).toHaveLength(1)
  })
})

describe('with the capability `identity` off', () => {
  const identityProvider = async () => assertionOf('ada')

  it('if the capability `identity` is off, the client does not call the identity provider, and the chat works', async () => {
    turnOff('identity')
    const { client } = await started({ identityProvider: () => Promise.reject(new Error('asked')) })
    expect(client.session()?.identity.state).toBe('anonymous')
    await expect(client.identify()).rejects.toMatchObject({ code: 'identity_unavailable' })
    expect(sent('POST /sessions/identify')).toEqual([])
  })

  it('a visitor whom an earlier page identified is logged out once the capability `identity` is off', async () => {
    const { client, storage } = await started({ identityProvider })
    expect(client.session()?.identity.state).toBe('verified')
    client.stop()
    turnOff('identity')
    const next = createClientHarness(server, 'pk_friendly', { clock, storage, options: { identityProvider } })
    await next.started()
    expect(next.client.session()?.identity.state).toBe('anonymous')
  })

  it('the chat starts without an identity if the service refuses the identification because the capability is off', async () => {
    const harness = createClientHarness(server, 'pk_identity_off', { clock, options: { identityProvider } })
    await harness.started()
    const { client } = harness
    expect(client.session()?.identity.state).toBe('anonymous')
    expect(client.ended()).toBeUndefined()
  })
})

describe('agents’ requests', () => {
  it('an agent’s request disappears if the service refuses the visitor’s answer because the capability is off', async () => {
    const { client } = await started()
    const id = server.features.request(server.conversation('pk_friendly'), 'navigation', { url: 'http://shop.test/a' })
    await until(() => client.requests().length === 1)
    turnOff('navigation')
    server.features.failNext('acknowledgements', refused)
    await expect(client.acknowledgeNavigation(id, 'accepted')).rejects.toMatchObject({ code: 'RouteNotAdvertised' })
    expect(client.requests()).toEqual([])
  })
})

it('an agent’s typing is not shown if the capability `typing` is off', async () => {
  turnOff('typing')
  const { client } = await started()
  server.conversation('pk_friendly').emit('typing.started', { author: { kind: 'agent', displayName: 'Ada' } })
  server.conversation('pk_friendly').agentSays('Hello', 'Jonas')
  await until(() => client.messages().length === 1)
  expect(client.presence().typing).toEqual([])
})

it('a call that is refused because of a capability causes one request for the configuration', async () => {
  const { client } = await started()
  const before = configReads()
  server.features.failNext('/context/page', refused)
  turnOff('pageContext')
  client.updatePageContext({ url: 'http://shop.test/a' })
  clock.advance(500)
  await until(() => client.config()?.capabilities.pageContext === false)
  expect(configReads()).toBe(before + 1)
})

it('a request for the configuration that gets no answer ends, so that later changes are read', async () => {
  let reads = 0
  const fetch: typeof globalThis.fetch = (input, init) => {
    reads += Number(String(input).includes('/config/'))
    if (!String(input).includes('/config/') || reads !== 2) return fetchFromPage(input, init)
    return new Promise((_, reject) => init?.signal?.addEventListener('abort', () => reject(new TypeError('aborted'))))
  }
  const harness = await started({ platform: { fetch } })
  clock.advance(60_000)
  await until(() => reads === 2)
  clock.advance(60_000)
  turnOff('typing')
  harness.signal('online')
  await until(
    () => harness.client.config()?.capabilities.typing === false,
    () => clock.advance(100),
  )
})
