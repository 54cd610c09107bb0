import { beforeEach, describe, expect, it } from 'vitest'
import { assertionOf } from './assertion-of.ts'
import { createClientHarness, settled, until } from './client-harness.ts'
import { serverPerTest } from './server-per-test.ts'

const fields = { email: 'ada@example.com' }
const featureKey = 'service.widget.1.pk_friendly.features'

const email = { name: 'email', label: 'Email', type: 'email', required: true, maxLength: 254 }
const { clock, server } = serverPerTest({
  capabilities: { navigation: true, screenshots: true, preChatForm: true },
  forms: { preChat: { fields: [email] } },
})
let person: string | undefined
beforeEach(() => {
  person = 'ada'
})

async function startedAsAda() {
  const options = {
    supports: { navigation: true, screenshots: true },
    identityProvider: async () => person && assertionOf(person),
  }
  const harness = createClientHarness(server, 'pk_friendly', { clock, options })
  await harness.started()
  return { ...harness, adas: grantOf('GET /events') }
}

type Harness = Awaited<ReturnType<typeof startedAsAda>>

const grantOf = (route: string) => server.seen(route).at(-1)?.headers.authorization
const asked = (part: string) => server.requests.filter(({ path }) => path.includes(part))
const ask = (kind: 'navigation' | 'screenshot') =>
  server.features.request(server.conversation('pk_friendly'), kind, {
    ...(kind === 'navigation' && { url: 'http://shop.test/sale' }),
  })

/** Advances the clock by a minute, so that all pending retries would run. */
async function letTimePass() {
  for (let second = 0; second < 60; second += 1) {
    clock.advance(1_000)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

const changes: Record<string, (harness: Harness) => Promise<unknown>> = {
  async 'another person signs in'({ client }) {
    person = 'bob'
    await client.identify({ externalSubject: 'bob' })
  },
  async 'the visitor signs out'({ client }) {
    person = undefined
    await client.clearIdentity()
  },
  async 'the visitor is reset'({ client }) {
    person = 'bob'
    await client.resetVisitor({ closeSession: true, clearHistory: true, clearDraft: true })
  },
}

/**
 * Expects that the client has no data of Ada, the previous visitor. Also expects that exactly
 * `before` requests have `part` in their path, and that each of them has Ada's grant.
 */
async function expectNothingOf(harness: Harness, part: string, before: number) {
  await until(() => harness.client.connection() === 'online')
  expect(grantOf('GET /events')).not.toBe(harness.adas)
  await letTimePass()
  expect(asked(part).every(({ headers }) => headers.authorization === harness.adas)).toBe(true)
  expect(asked(part)).toHaveLength(before)
  expect(harness.client.requests()).toEqual([])
  expect(harness.client.activity()).toEqual([])
  expect(harness.client.formState('preChat')).toEqual({ status: 'open' })
  expect(harness.storage.getItem(featureKey) ?? '').not.toMatch(/ada|cmd_|scr_/)
}

describe.each(Object.keys(changes))('when %s', (name) => {
  const change = changes[name]!

  it('a form whose submission is pending is not sent for the next visitor, and the late response is ignored', async () => {
    const harness = await startedAsAda()
    const release = server.features.hold('/forms/')
    const submitting = harness.client.submitForm('preChat', fields)
    await until(() => asked('/forms/').length === 1)
    await change(harness)
    const eventCount = harness.events.length
    release()
    await expectNothingOf(harness, '/forms/', 1)
    expect(await submitting).toEqual({ status: 'open' })
    expect(harness.events.slice(eventCount).map(({ name }) => name)).not.toContain('form.changed')
    expect(harness.client.formDue()).toBe('preChat')
  })

  it('a pending form whose first attempt failed is not sent again after the visitor changed', async () => {
    const harness = await startedAsAda()
    server.features.failNext('/forms/', { status: 503, code: 'ServiceUnavailable' })
    const submitting = harness.client.submitForm('preChat', fields)
    await until(() => asked('/forms/').length === 1)
    await settled()
    await change(harness)
    await expectNothingOf(harness, '/forms/', 1)
    await submitting
    expect(server.features.leads).toEqual([])
  })

  it('a late response to the previous visitor’s answer to an agent’s request is ignored', async () => {
    const harness = await startedAsAda()
    const id = ask('navigation')
    await until(() => harness.client.requests().length === 1)
    const release = server.features.hold('acknowledgements')
    const answering = harness.client.acknowledgeNavigation(id, 'accepted').catch((error) => error.code)
    await until(() => asked('acknowledgements').length === 1)
    await change(harness)
    release()
    await expectNothingOf(harness, 'acknowledgements', 1)
    await answering
    await expect(harness.client.acknowledgeNavigation(id, 'completed')).rejects.toMatchObject({
      code: 'request_unknown',
    })
  })

  it('a pending upload whose first attempt failed is not sent again after the visitor changed', async () => {
    const harness = await startedAsAda()
    const id = ask('screenshot')
    await until(() => harness.client.requests().length === 1)
    await harness.client.acknowledgeScreenshot(id, 'granted')
    server.features.failNext('upload', { status: 503, code: 'ServiceUnavailable' })
    const picture = new Blob([new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])], { type: 'image/png' })
    const uploading = harness.client.uploadScreenshot(id, picture).catch((error) => error.code)
    await until(() => asked('upload').length === 1)
    await settled()
    await change(harness)
    await expectNothingOf(harness, 'upload', 1)
    expect(await uploading).toBe('session_ended')
    expect(server.features.uploads.size).toBe(0)
  })
})

it('a change of visitor removes the previous visitor’s data before the service has answered', async () => {
  const harness = await startedAsAda()
  ask('navigation')
  await until(() => harness.client.requests().length === 1)
  server.features.failNext('/forms/', { status: 503, code: 'ServiceUnavailable' })
  void harness.client.submitForm('preChat', fields)
  await until(() => asked('/forms/').length === 1)
  const seen: unknown[] = []
  harness.client.on('messages.changed', ({ messages }) => {
    if (messages.length > 0 || seen.length > 0) return
    seen.push(harness.client.requests(), harness.client.formState('preChat'), harness.storage.getItem(featureKey))
  })
  person = undefined
  await harness.client.clearIdentity()
  expect(seen).toEqual([[], { status: 'open' }, null])
})

describe('when an anonymous visitor is identified', () => {
  async function startedAnonymously() {
    person = undefined
    return startedAsAda()
  }

  it('an identification keeps a submitted form, and removes agents’ pending requests of the previous session', async () => {
    const harness = await startedAnonymously()
    server.conversation('pk_friendly').agentSays('Hello')
    await until(() => harness.bodies().length === 1)
    await harness.client.submitForm('preChat', fields)
    ask('navigation')
    await until(() => harness.client.requests().length === 1)
    person = 'ada'
    await harness.client.identify({ externalSubject: 'ada' })
    await until(() => harness.client.connection() === 'online')
    expect(harness.client.formState('preChat').status).toBe('submitted')
    expect(harness.client.requests()).toEqual([])
    expect(JSON.parse(harness.storage.getItem(featureKey) ?? '{}')).toMatchObject({
      sessionId: harness.client.session()?.sessionId,
      requests: [],
    })
  })

  it('a form that is pending during an identification keeps its idempotency key, and uses the new grant once the old one has expired', async () => {
    const harness = await startedAnonymously()
    server.conversation('pk_friendly').agentSays('Hello')
    const release = server.features.hold('/forms/')
    server.features.failNext('/forms/', { status: 401, code: 'SessionClosed', terminal: true })
    const submitting = harness.client.submitForm('preChat', fields)
    await until(() => asked('/forms/').length === 1)
    person = 'ada'
    await harness.client.identify({ externalSubject: 'ada' })
    release()
    expect(await submitting).toMatchObject({ status: 'submitted' })
    const [first, second] = asked('/forms/')
    expect(second?.headers['idempotency-key']).toBe(first?.headers['idempotency-key'])
    expect(second?.headers.authorization).not.toBe(first?.headers.authorization)
    expect(server.features.leads).toHaveLength(1)
  })
})
