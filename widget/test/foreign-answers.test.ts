import { describe, expect, it } from 'vitest'
import { someOf } from '../../test/support/is-long.ts'
import { createClientHarness, fetchFromPage, until } from './client-harness.ts'
import { serverPerTest } from './server-per-test.ts'

const { clock, server } = serverPerTest()

/** Answers that do not come from the service but from proxies, captive portals or default backends. */
const answers: Record<string, () => Response> = {
  'a page with 404': () => new Response('<h1>404 page not found</h1>', { status: 404 }),
  'a page with 401': () => new Response('<h1>Sign in</h1>', { status: 401 }),
  'a page with 403': () => new Response('<h1>Forbidden</h1>', { status: 403 }),
  'a page with 413': () => new Response('<h1>Too large</h1>', { status: 413 }),
  'a page with 502': () => new Response('<h1>Bad gateway</h1>', { status: 502 }),
  'JSON with 404 that is no envelope': () => Response.json({ message: 'no Route matched' }, { status: 404 }),
  'JSON with 403 that is null': () => Response.json(null, { status: 403 }),
  'a page with 200': () => new Response('<h1>Welcome to the hotel</h1>'),
  'JSON with 200 of another service': () => Response.json({ ok: true }),
  'null with 200': () => Response.json(null),
}

/**
 * Creates a client. While `isForeign` is true, its requests to `route` get the given answer and do
 * not reach the service.
 */
function startBehindProxy(route: string, answer: () => Response) {
  const proxy = { isForeign: false, count: 0 }
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const asked = `${init?.method} ${new URL(String(input)).pathname.replace(/^.*\/widget/, '')}`
    if (!proxy.isForeign || asked !== route) return fetchFromPage(input, init)
    proxy.count += 1
    return answer()
  }
  return {
    proxy,
    harness: createClientHarness(server, 'pk_friendly', {
      clock,
      options: { platform: { fetch } },
    }),
  }
}

describe.each(someOf(Object.keys(answers), 3))('if a proxy, not the service, answers with %s', (name) => {
  const answer = answers[name]!

  it('the client retries a renewal that a proxy answered, and keeps the session', async () => {
    const { proxy, harness } = startBehindProxy('POST /sessions/renew', answer)
    await harness.started()
    proxy.isForeign = true
    clock.advance(616_000)
    await until(() => proxy.count === 1)
    await until(() => harness.count('error') === 1)
    proxy.isForeign = false
    await until(
      () => server.seen('POST /sessions/renew').length === 1,
      () => clock.advance(1_000),
    )
    harness.client.sendMessage('Still here')
    await until(() => harness.states()[0] === 'queued')
    expect(harness.client.ended()).toBeUndefined()
  })

  it('the client opens the stream again after a proxy answered its request, and keeps the session', async () => {
    const { proxy, harness } = startBehindProxy('GET /events', answer)
    await harness.started()
    proxy.isForeign = true
    server.conversation('pk_friendly').cutStreams()
    await until(
      () => proxy.count >= 3,
      () => clock.advance(1_000),
    )
    proxy.isForeign = false
    await until(
      () => harness.client.connection() === 'online',
      () => clock.advance(1_000),
    )
    expect(harness.names()).not.toContain('error')
  })

  it('the client retries a message that a proxy answered, and does not report it as failed', async () => {
    const { proxy, harness } = startBehindProxy('POST /messages', answer)
    await harness.started()
    proxy.isForeign = true
    harness.client.sendMessage('Hello')
    await until(() => proxy.count === 1)
    await until(() => harness.states()[0] === 'retrying')
    proxy.isForeign = false
    await until(
      () => harness.states()[0] === 'queued',
      () => clock.advance(1_000),
    )
    expect(harness.bodies()).toEqual(['Hello'])
    expect(harness.count('message.retry.exhausted')).toBe(0)
  })

  it('the client retries a history request that a proxy answered', async () => {
    const { proxy, harness } = startBehindProxy('GET /messages', answer)
    proxy.isForeign = true
    await harness.started()
    await until(() => proxy.count === 1)
    proxy.isForeign = false
    await until(
      () => server.seen('GET /messages').length === 1,
      () => clock.advance(1_000),
    )
    expect(harness.client.ended()).toBeUndefined()
  })

  it('the client retries the creation of a session that a proxy answered', async () => {
    const { proxy, harness } = startBehindProxy('POST /sessions', answer)
    proxy.isForeign = true
    const starting = harness.client.start()
    await until(() => proxy.count === 1)
    await until(() => harness.count('error') === 1)
    proxy.isForeign = false
    await until(
      () => harness.client.connection() === 'online',
      () => clock.advance(1_000),
    )
    await starting
  })
})
