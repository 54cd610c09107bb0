import { afterEach, describe, expect, it } from 'vitest'
import { someOf } from '../../test/support/is-long.ts'
import { assertionOf } from './assertion-of.ts'
import { createClientHarness, fetchFromPage, until } from './client-harness.ts'
import { serverPerTest } from './server-per-test.ts'

const { clock, restart, server } = serverPerTest()
const longestTimerMs = 2 ** 31 - 1

type Harness = ReturnType<typeof createClientHarness>
let harness: Harness | undefined
afterEach(() => harness?.client.stop())

const form = { name: 'email', label: 'Email', type: 'email', required: true, maxLength: 254 }
const config = {
  capabilities: { typing: true, pageContext: true, preChatForm: true, navigation: true, screenshots: true },
  forms: { preChat: { fields: [form] } },
}
const page = { url: 'http://shop.test/a' }

async function ask(kind: 'navigation' | 'screenshot') {
  const id = server.features.request(server.conversation('pk_friendly'), kind, {
    ...(kind === 'navigation' && { url: 'http://shop.test/sale' }),
  })
  await until(() => harness!.client.requests().length === 1)
  return id
}

/** Each route of the package, and what makes the client call it. */
const routes: Record<string, (harness: Harness) => unknown> = {
  'GET /config/pk_friendly': ({ client }) => client.start(),
  'POST /sessions': ({ client }) => client.start(),
  'GET /messages': ({ client }) => client.start(),
  'GET /events': ({ client }) => client.start(),
  'POST /sessions/renew': () => clock.advance(616_000),
  'POST /sessions/identify': ({ client }) => client.identify({ externalSubject: 'ada' }),
  'DELETE /sessions/identify': async ({ client }) => {
    await client.identify({ externalSubject: 'ada' })
    await client.clearIdentity()
  },
  'POST /sessions/close': ({ client }) => client.resetVisitor({ closeSession: true }),
  'POST /messages': ({ client }) => client.sendMessage('Hello'),
  'POST /messages/receipts': () => server.conversation('pk_friendly').agentSays('Hi'),
  'POST /typing': ({ client }) => client.startTyping(),
  'POST /presence': ({ client }) => client.setChatShown(true),
  'POST /context/page': ({ client }) => client.updatePageContext(page),
  'POST /forms/pre-chat': ({ client }) => client.submitForm('preChat', { email: 'ada@example.com' }),
  'POST /commands/navigation': async ({ client }) => client.acknowledgeNavigation(await ask('navigation'), 'accepted'),
  'POST /commands/screenshots': async ({ client }) => client.acknowledgeScreenshot(await ask('screenshot'), 'granted'),
}

const html =
  (status: number, headers = {}) =>
  () =>
    new Response('<h1>Not the service</h1>', { status, headers })

/** Answers of proxies, captive portals and default backends. None of them is an envelope. */
const foreign: Record<string, () => Response | Promise<Response>> = {
  'a page with 200': html(200),
  'an empty 200': () => new Response(''),
  'an empty 204': () => new Response(null, { status: 204 }),
  'a redirect': () => Promise.reject(new TypeError('redirect')),
  'a page with 400': html(400),
  'a page with 401': html(401),
  'a page with 404': html(404),
  'an empty 404': () => new Response('', { status: 404 }),
  'a page with 405': html(405),
  'a page with 413': html(413),
  'JSON with 403': () => Response.json({ code: 'SessionRevoked', message: 'of another service' }, { status: 403 }),
  'a number as code': () => Response.json({ code: 5, terminal: 'true' }, { status: 403 }),
  'a page with 500': html(500),
  'a page with 503 and a wait of 30 days': html(503, { 'Retry-After': '2592000' }),
  'a page with 429 and an endless wait': html(429, { 'Retry-After': '1e400' }),
  'a page with 503 and a negative wait': html(503, { 'Retry-After': '-1' }),
  'a page with 503 and a date': html(503, { 'Retry-After': 'Fri, 31 Dec 2049 23:59:59 GMT' }),
  'a page with 502 and nonsense': html(502, { 'Retry-After': 'soon', 'Content-Type': 'text/event-stream' }),
}

/** Answers of the service that ask for a wait. */
const envelopes: Record<string, () => Response> = Object.fromEntries(
  [600, 2_147_484, 2_592_000, 1e300].map((retryAfter) => [
    `an envelope with a wait of ${retryAfter} s`,
    () => Response.json({ code: 'RateLimited', retryable: true, terminal: false, retryAfter }, { status: 429 }),
  ]),
)

const isBeforeStart = (route: string) => /config|POST \/sessions$|GET \/(messages|events)/.test(route)

/** Starts a client whose requests to `route` get the given answer until `heal` is called. */
async function behind(route: string, answer: () => Response | Promise<Response>) {
  await restart(config)
  const proxy = { isForeign: false, times: [] as number[] }
  const timers: number[] = []
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const path = new URL(String(input)).pathname.replace(/^.*\/widget/, '').replace(/\/(cmd|scr)_.*$/, '')
    if (!proxy.isForeign || `${init?.method} ${path}` !== route) return fetchFromPage(input, init)
    proxy.times.push(clock.now())
    return answer()
  }
  const watchedClock = {
    now: clock.now,
    clearTimeout: clock.clearTimeout,
    setTimeout(callback: () => void, ms: number) {
      timers.push(ms)
      return clock.setTimeout(callback, ms)
    },
  }
  harness = createClientHarness(server, 'pk_friendly', {
    clock,
    options: {
      identityProvider: async (wanted) => wanted && assertionOf(wanted.externalSubject!),
      supports: { navigation: true, screenshots: true },
      platform: { fetch, clock: watchedClock },
    },
  })
  if (!isBeforeStart(route)) {
    await harness.started()
  }
  proxy.isForeign = true
  return { harness, proxy, timers, clock }
}

/** Advances the clock in steps of ten seconds, so that answers arrive in between. */
async function passMinutes(minutes: number) {
  for (let step = 0; step < minutes * 6; step += 1) {
    clock.advance(10_000)
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}

async function survive(route: string, answers: readonly (() => Response | Promise<Response>)[]) {
  let next = 0
  const { harness, proxy, timers } = await behind(route, () => answers[next++ % answers.length]!())
  void Promise.resolve(routes[route]!(harness)).catch(() => {})
  await until(
    () => proxy.times.length > 0,
    () => clock.advance(100),
  )
  await passMinutes(route === 'POST /sessions/renew' ? 3 : 12)
  expect(timers.filter((ms) => !(ms >= 0 && ms <= longestTimerMs))).toEqual([])
  // After a logout that failed, the chat stays closed until the visitor starts a new session.
  if (route.startsWith('DELETE')) expect(harness.client.canStartNew()).toBe(true)
  else expect(harness.client.ended()).toBeUndefined()
  return { harness, proxy }
}

describe.each(someOf(Object.keys(routes), 4))('C7.2 %s', (route) => {
  it('is not repeated in a storm, and ends no session, if machines in between answer', async () => {
    const { harness, proxy } = await survive(route, Object.values(foreign))
    // The clock has passed 72 steps. No step may cause more than a few requests.
    expect(proxy.times.length).toBeLessThan(300)
    proxy.isForeign = false
    if (!isBeforeStart(route)) return
    await until(
      () => harness.client.connection() === 'online',
      () => clock.advance(1_000),
    )
    expect(harness.client.ended()).toBeUndefined()
  })

  it('is not repeated in a storm if the service asks for a wait longer than a timer can be', async () => {
    const { proxy } = await survive(route, Object.values(envelopes))
    expect(proxy.times.length).toBeLessThan(20)
  })
})

it.each(['POST /sessions', 'GET /events', 'GET /messages', 'GET /config/pk_friendly'])(
  'C7.2 a wait of 30 days that an answer to %s asks for ends after 120 s',
  async (route) => {
    const { proxy } = await survive(route, [envelopes['an envelope with a wait of 2592000 s']!])
    const waits = proxy.times.slice(1).map((time, index) => time - proxy.times[index]!)
    expect(waits.length).toBeGreaterThan(2)
    // The clock advances in steps of up to ten seconds.
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(120_000)
    expect(Math.max(...waits)).toBeLessThanOrEqual(130_200)
  },
)
