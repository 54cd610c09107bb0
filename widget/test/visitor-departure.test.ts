import { describe, expect, it } from 'vitest'
import { type KeyValueStorage, storageFor } from '../../browser/storage.ts'
import { assertionOf } from './assertion-of.ts'
import { createClientHarness, fetchFromPage, until } from './client-harness.ts'
import { serverPerTest } from './server-per-test.ts'

const { clock, server } = serverPerTest()
const key = 'service.widget.1.pk_friendly'
const parts = ['', '.outbox', '.features', '.consent']

const stored = (storage: KeyValueStorage) => parts.map((part) => storage.getItem(key + part) ?? '').join()

/** Starts a client whose page belongs to `person`. Records its state when it sends `watched`. */
function load(storage: KeyValueStorage, person: string | undefined, watched: RegExp) {
  const site = { person, seen: [] as unknown[], away: '' }
  const fetch: typeof globalThis.fetch = (input, init) => {
    const { client } = harness
    if (watched.test(`${init?.method} ${input}`) && harness.client.connection() !== 'online')
      site.seen.push([harness.bodies(), client.draft(), client.session()])
    if (watched.test(`${init?.method} ${input}`)) leftovers.push(stored(storage))
    if (site.away === 'refused') return Promise.reject(new TypeError('Failed to fetch'))
    if (site.away === 'hanging') return new Promise(() => {})
    return fetchFromPage(input, init)
  }
  const leftovers: string[] = []
  const harness = createClientHarness(server, 'pk_friendly', {
    clock,
    storage,
    options: { identityProvider: async () => site.person && assertionOf(site.person), platform: { fetch } },
  })
  return { site, leftovers, harness }
}

/** Starts as a person with a message, an unsent message and a draft. */
async function startedAs(person: string | undefined, watched: RegExp) {
  const storage = storageFor('memory')
  const loaded = load(storage, person, watched)
  const { harness } = loaded
  await harness.started()
  server.conversation('pk_friendly').agentSays('Secret answer')
  await until(() => harness.bodies().length === 1)
  harness.network.online = false
  harness.client.sendMessage('Secret unsent')
  harness.client.setDraft('Secret draft')
  storage.setItem(`${key}.consent`, '{"secret":"Secret"}')
  loaded.leftovers.length = loaded.site.seen.length = 0
  return { ...loaded, storage }
}

const identifies = /POST .*identify/
const leaves = /(DELETE .*identify|POST .*close)/
const gone = [[], '', undefined]

describe('C7.4 another person', () => {
  it('has none of the previous person’s data on the page or in the storage when the identification leaves', async () => {
    const { harness, site, leftovers } = await startedAs('ada', identifies)
    site.person = 'bob'
    await harness.client.identify({ externalSubject: 'bob' })
    expect(site.seen.at(-1)).toEqual(gone)
    expect(leftovers).toHaveLength(1)
    expect(leftovers[0]).not.toMatch(/Secret|accessGrant|ada/)
    expect([harness.bodies(), harness.client.draft()]).toEqual([[], ''])
  })

  it.each(['bob', undefined])(
    'keeps nothing of the previous person at the next page load, for the person %s',
    async (person) => {
      const { harness, storage } = await startedAs('ada', identifies)
      harness.client.stop()
      const next = load(storage, person, /identify/)
      await next.harness.started()
      expect(next.site.seen.at(-1)).toEqual(gone)
      expect(next.leftovers.join()).not.toMatch(/Secret|accessGrant|ada/)
      expect(next.harness.client.session()?.identity.state).toBe(person ? 'verified' : 'anonymous')
    },
  )

  it('sees a closed chat if the identification is refused, and can start a new one', async () => {
    const { harness, site, storage } = await startedAs('ada', identifies)
    site.person = 'bob'
    const refusal = { status: 401, code: 'IdentityAssertionInvalid' }
    const { url } = server
    const value = { refuseIdentities: [refusal] }
    await fetch(`${url}/control`, {
      method: 'POST',
      body: JSON.stringify({ call: 'set', siteKey: 'pk_friendly', value }),
    })
    await expect(harness.client.identify()).rejects.toMatchObject({ code: 'IdentityAssertionInvalid' })
    expect([harness.bodies(), harness.client.ended()?.code]).toEqual([[], 'IdentityAssertionInvalid'])
    expect(stored(storage)).not.toMatch(/Secret|accessGrant|ada/)
    harness.network.online = true
    await harness.client.startNew()
    expect(harness.client.session()?.identity.state).toBe('verified')
  })

  it('is refused: the previous session is closed, and no session begins after a reload until startNew()', async () => {
    const { harness, site, storage } = await startedAs('ada', identifies)
    const adas = JSON.parse(storage.getItem(key)!).session.accessGrant
    const sessions = server.sessionCount('pk_friendly')
    site.person = 'bob'
    server.set('pk_friendly', { refuseIdentities: [{ status: 401, code: 'IdentityAssertionInvalid' }] })
    harness.network.online = true
    await expect(harness.client.identify()).rejects.toMatchObject({ code: 'IdentityAssertionInvalid' })
    await until(() => server.seen('POST /sessions/close').length === 1)
    expect(server.seen('POST /sessions/close')[0]?.headers.authorization).toBe(`Bearer ${adas}`)
    harness.client.stop()

    const next = load(storage, 'bob', identifies)
    await next.harness.client.start()
    expect(next.harness.client.ended()).toMatchObject({ event: 'session.closed' })
    expect(server.sessionCount('pk_friendly')).toBe(sessions)
    expect(stored(storage)).not.toMatch(/Secret|accessGrant|ada/)
    await next.harness.client.startNew()
    expect(next.harness.client.session()?.identity.state).toBe('verified')
  })

  it.each(['ends', 'still waits when the page is left'])(
    'comes while the service is away, and the attempt %s: a later page closes the session',
    async (how) => {
      const { harness, site, storage } = await startedAs('ada', identifies)
      const adas = JSON.parse(storage.getItem(key)!).session.accessGrant
      harness.client.stop()
      let isAway = true
      let attempts = 0
      const away: typeof globalThis.fetch = (...given) => {
        attempts += 1
        return isAway ? Promise.reject(new TypeError('Load failed')) : fetchFromPage(...given)
      }
      const open = (person: string) =>
        createClientHarness(server, 'pk_friendly', {
          clock,
          storage,
          options: { identityProvider: async () => person && assertionOf(person), platform: { fetch: away } },
        })
      site.person = 'bob'
      const first = open('bob')
      const leaving = first.client.clearIdentity().catch(({ code }) => code)
      if (how === 'ends') {
        await until(
          () => storage.getItem(`${key}.left`) !== null,
          () => clock.advance(1_000),
        )
        expect(await leaving).toMatch(/timeout|network_error/)
      } else {
        await until(() => attempts > 0)
        first.signal('pagehide')
      }
      expect(storage.getItem(`${key}.left`)).toContain(adas)
      expect(storage.getItem(`${key}.left`)).not.toMatch(/Secret|ada@|displayName/)

      isAway = false
      const next = open('bob')
      void next.client.start()
      await until(() => server.seen('POST /sessions/close').length === 1)
      expect(server.seen('POST /sessions/close')[0]?.headers.authorization).toBe(`Bearer ${adas}`)
      await until(() => storage.getItem(`${key}.left`) === '[]')
    },
  )

  it('keeps messages, draft and session if the same person is identified again', async () => {
    const { harness, site } = await startedAs('ada', identifies)
    const session = harness.client.session()
    await harness.client.identify()
    expect([harness.client.session(), harness.bodies(), harness.client.draft(), site.seen]).toEqual([
      session,
      ['Secret answer', 'Secret unsent'],
      'Secret draft',
      [],
    ])
  })
})

describe('C7.4 a logout', () => {
  const calls = {
    'clearIdentity()': ({ client }: ReturnType<typeof load>['harness']) => client.clearIdentity(),
    'resetVisitor()': ({ client }: ReturnType<typeof load>['harness']) => client.resetVisitor(),
  }
  const cases = Object.keys(calls).flatMap((name) =>
    ['ada', undefined].map((person) => [name as keyof typeof calls, person] as const),
  )

  it.each(cases)('%s of %s removes everything before its request leaves, and starts anew', async (name, person) => {
    const { harness, leftovers, site, storage } = await startedAs(person, leaves)
    const before = harness.client.session()
    await calls[name](harness)
    expect(site.seen.at(-1)).toEqual(gone)
    expect(leftovers[0]).not.toMatch(/Secret|accessGrant|ada/)
    expect(stored(storage)).not.toMatch(/Secret|ada/)
    expect([harness.bodies(), harness.client.draft()]).toEqual([[], ''])
    expect(harness.client.session()?.identity.state).toBe('anonymous')
    expect(harness.client.session()?.conversationId).not.toBe(before?.conversationId)
  })

  it.each(cases)('%s of %s before the start ends the stored session on the service', async (name, person) => {
    const { harness, storage } = await startedAs(person, leaves)
    harness.client.stop()
    const grant = JSON.parse(storage.getItem(key)!).session.accessGrant
    const next = load(storage, undefined, leaves)
    await calls[name](next.harness)
    expect(next.leftovers).toHaveLength(1)
    expect(next.leftovers[0]).not.toMatch(/Secret|accessGrant|ada/)
    expect(stored(storage)).not.toMatch(/Secret|accessGrant|ada/)
    expect(next.harness.client.connection()).toBe('idle')
    const answer = await fetchFromPage(`${server.url}/api/integrations/v1/widget/messages`, {
      headers: { Authorization: `Bearer ${grant}`, 'X-Service-Widget-Version': '1.0' },
    })
    expect((await answer.json()).code).toBe('SessionClosed')
    await next.harness.started()
    expect(next.harness.bodies()).toEqual([])
  })

  it.each(['refused', 'hanging'])('ends within two seconds while the service is %s', async (kind) => {
    const { harness, storage, site } = await startedAs('ada', /none/)
    harness.network.online = true
    site.away = kind
    const began = clock.now()
    let outcome = ''
    harness.client.clearIdentity().then(
      () => (outcome = 'done'),
      ({ code }) => (outcome = code),
    )
    await until(() => !/Secret|accessGrant/.test(stored(storage)))
    await clock.advance(2_000)
    await until(() => outcome !== '')
    expect(outcome).toMatch(/timeout|network_error/)
    expect(clock.now() - began).toBeLessThanOrEqual(2_000)
    expect([harness.bodies(), harness.client.draft()]).toEqual([[], ''])
  })

  it('renews an expired grant of the stored session first', async () => {
    const { harness, storage } = await startedAs('ada', leaves)
    harness.client.stop()
    clock.sleep(1_000_000)
    const next = load(storage, undefined, leaves)
    await next.harness.client.clearIdentity()
    expect(server.seen('POST /sessions/renew')).toHaveLength(1)
    expect(stored(storage)).not.toMatch(/accessGrant/)
  })

  it('with clearDraft or clearHistory before the start keeps the stored session', async () => {
    const { harness, storage } = await startedAs('ada', leaves)
    harness.client.stop()
    const next = load(storage, 'ada', leaves)
    await next.harness.client.resetVisitor({ clearDraft: true, clearHistory: true })
    expect(next.leftovers).toEqual([])
    next.harness.network.online = false
    await next.harness.started()
    expect([next.harness.bodies(), next.harness.client.draft()]).toEqual([['Secret unsent'], ''])
  })
})

it('identify before the start is refused with not_started', async () => {
  const { harness } = load(storageFor('memory'), 'ada', leaves)
  await expect(harness.client.identify()).rejects.toMatchObject({ code: 'not_started' })
  expect(server.requests).toEqual([])
})
