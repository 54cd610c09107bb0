import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { KeyValueStorage } from '../../browser/storage.ts'
import { createClientHarness, until } from './client-harness.ts'
import { serverPerTest } from './server-per-test.ts'

const both = { navigation: true, screenshots: true }
const { clock, server, restart } = serverPerTest({ capabilities: both })

async function started(supports: Partial<typeof both> | undefined = both, storage?: KeyValueStorage) {
  const harness = createClientHarness(server, 'pk_friendly', { clock, storage, options: { supports } })
  await harness.started()
  return harness
}

const conversation = () => server.conversation('pk_friendly')
const ask = (kind: 'navigation' | 'screenshot', about: Record<string, unknown> = {}) =>
  server.features.request(
    conversation(),
    kind,
    kind === 'navigation' ? { url: 'http://shop.test/sale', ...about } : about,
  )
const acknowledgements = (id: string) => server.requests.filter(({ path }) => path.includes(`/${id}/acknowledgements`))
const lines = (harness: Awaited<ReturnType<typeof started>>) => harness.client.activity().map(({ type }) => type)
const png = () =>
  new Blob([new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3])], { type: 'image/png' })

describe('agents’ navigation requests', () => {
  it('a navigation request is emitted as one event, and the service receives the visitor’s decision and the result of the navigation', async () => {
    const harness = await started()
    const id = ask('navigation', { label: 'The autumn sale' })
    await until(() => harness.count('navigation.requested') === 1)
    expect(harness.client.requests()).toMatchObject([
      { id, kind: 'navigation', url: 'http://shop.test/sale', label: 'The autumn sale', state: 'requested' },
    ])
    await harness.client.acknowledgeNavigation(id, 'accepted')
    expect(harness.client.requests()[0]?.state).toBe('accepted')
    await harness.client.acknowledgeNavigation(id, 'completed')
    expect(server.features.commandState(id)).toBe('completed')
    expect(harness.client.requests()).toEqual([])
    expect(lines(harness)).toEqual(['navigation.completed'])
  })

  it('a navigation request is answered once, even if the response of the service is lost or the visitor answers twice', async () => {
    const harness = await started()
    const id = ask('navigation')
    await until(() => harness.client.requests().length === 1)
    server.features.failNext('acknowledgements', 'lost')
    const answers = [
      harness.client.acknowledgeNavigation(id, 'declined'),
      harness.client.acknowledgeNavigation(id, 'declined'),
    ]
    await until(
      () => acknowledgements(id).length === 2,
      () => clock.advance(1_000),
    )
    await Promise.all(answers)
    expect(new Set(acknowledgements(id).map(({ headers }) => headers['idempotency-key'])).size).toBe(1)
    expect(server.features.commandState(id)).toBe('declined')
  })

  it('a navigation request is restored on the next page after it was accepted, and the next page reports the navigation as completed', async () => {
    const before = await started()
    const id = ask('navigation')
    await until(() => before.client.requests().length === 1)
    await before.client.acknowledgeNavigation(id, 'accepted')
    before.client.stop()
    const after = await started(both, before.storage)
    expect(after.client.requests()).toMatchObject([{ id, state: 'accepted', url: 'http://shop.test/sale' }])
    clock.advance(200_000)
    await after.client.acknowledgeNavigation(id, 'completed')
    expect(server.features.commandState(id)).toBe('completed')
    expect(after.count('navigation.requested')).toBe(0)
  })

  it('a navigation request stays pending after a reload until it expires', async () => {
    const before = await started()
    const id = ask('navigation')
    await until(() => before.client.requests().length === 1)
    before.client.stop()
    const after = await started(both, before.storage)
    expect(after.client.requests()).toMatchObject([{ id, state: 'requested' }])
    clock.advance(120_000)
    expect(after.client.requests()).toEqual([])
    expect(lines(after)).toEqual(['navigation.expired'])
  })

  it.each(['javascript:alert(1)', 'data:text/html,x', 'not an address', ''])(
    'a navigation request is not emitted if its URL is %j',
    async (url) => {
      const harness = await started()
      const id = ask('navigation', { url })
      await until(() => server.features.commandState(id) === 'unsupported')
      expect(harness.count('navigation.requested')).toBe(0)
    },
  )
})

describe('agents’ screenshot requests', () => {
  it('a screenshot request can be granted, and the service then receives the uploaded bytes unchanged', async () => {
    const harness = await started()
    const id = ask('screenshot', { purpose: 'To see the error' })
    await until(() => harness.count('screenshot.requested') === 1)
    const answer = await harness.client.acknowledgeScreenshot(id, 'granted')
    expect(answer.upload?.maxBytes).toBe(5_242_880)
    const image = png()
    const uploaded = await harness.client.uploadScreenshot(id, image)
    const sha256 = createHash('sha256')
      .update(Buffer.from(await image.arrayBuffer()))
      .digest('hex')
    expect(uploaded).toMatchObject({ state: 'uploaded', sha256 })
    const upload = server.requests.find(({ path }) => path.endsWith('/upload'))
    expect(upload?.headers['content-type']).toBe('image/png')
    expect(lines(harness)).toEqual(['screenshot.uploaded'])
  })

  it('a screenshot is uploaded with one idempotency key in all attempts', async () => {
    const harness = await started()
    const id = ask('screenshot')
    await until(() => harness.client.requests().length === 1)
    await harness.client.acknowledgeScreenshot(id, 'granted')
    server.features.failNext('/upload', { status: 503, code: 'ServiceUnavailable' }, 'lost')
    const uploads = () => server.requests.filter(({ path }) => path.endsWith('/upload'))
    const uploading = harness.client.uploadScreenshot(id, png())
    await until(
      () => uploads().length === 3,
      () => clock.advance(2_000),
    )
    await uploading
    expect(new Set(uploads().map(({ headers }) => headers['idempotency-key'])).size).toBe(1)
  })

  it('a screenshot request stays pending if its upload is aborted', async () => {
    const harness = await started()
    const id = ask('screenshot')
    await until(() => harness.client.requests().length === 1)
    await harness.client.acknowledgeScreenshot(id, 'granted')
    const controller = new AbortController()
    controller.abort()
    const uploading = harness.client.uploadScreenshot(id, png(), { signal: controller.signal })
    await expect(uploading).rejects.toMatchObject({ code: 'aborted' })
    expect(server.features.uploads.size).toBe(0)
    expect(harness.client.requests()).toHaveLength(1)
  })

  it('a screenshot request gets a new deadline for the upload when the visitor grants it', async () => {
    const harness = await started()
    const id = ask('screenshot')
    await until(() => harness.client.requests().length === 1)
    clock.advance(100_000)
    await harness.client.acknowledgeScreenshot(id, 'granted')
    clock.advance(100_000)
    expect(harness.client.requests()).toHaveLength(1)
    clock.advance(20_000)
    expect(harness.client.requests()).toEqual([])
    expect(lines(harness)).toEqual(['screenshot.expired'])
  })
})

describe('agents’ requests', () => {
  it('an agent’s request expires on time even if the browser clock is wrong', async () => {
    // The browser's clock is five minutes ahead of the server's. The client learns this from the time in its grant.
    const serverNow = () => clock.now() - 300_000
    await restart({ capabilities: { screenshots: true } }, serverNow)
    const harness = await started()
    const expiresAt = new Date(serverNow() + 120_000).toISOString()
    conversation().emit('screenshot.requested', { requestId: 'scr_late', expiresAt }, serverNow())
    await until(() => harness.client.requests().length === 1)
    clock.advance(119_000)
    expect(harness.client.requests()).toHaveLength(1)
    clock.advance(1_001)
    expect(harness.client.requests()).toEqual([])
  })

  it('a request that expired while no page was open is not offered, even if its event is the first of the replay', async () => {
    const before = await started()
    before.client.stop()
    const expiresAt = new Date(clock.now() + 120_000).toISOString()
    conversation().emit('screenshot.requested', { requestId: 'scr_old', expiresAt }, clock.now())
    clock.advance(600_000)
    const after = await started(both, before.storage)
    conversation().agentSays('Are you there?')
    await until(() => after.bodies().length === 1)
    expect(after.client.requests()).toEqual([])
  })

  it('an agent’s request is removed when the agent cancels it', async () => {
    const harness = await started()
    const id = ask('screenshot')
    await until(() => harness.client.requests().length === 1)
    server.features.cancel(conversation(), id)
    await until(() => harness.count('screenshot.cancelled') === 1)
    expect(harness.client.requests()).toEqual([])
    expect(lines(harness)).toEqual(['screenshot.cancelled'])
    await expect(harness.client.acknowledgeScreenshot(id, 'granted')).rejects.toMatchObject({ code: 'request_unknown' })
    expect(acknowledgements(id)).toEqual([])
  })

  it.each([
    ['CommandExpired', 410, ['screenshot.expired']],
    ['CommandAlreadyResolved', 409, ['request.resolved']],
    ['CommandNotFound', 404, []],
  ])(
    'an agent’s request ends if the service answers the decision with %s, and the decision is not sent again',
    async (code, status, expected) => {
      const harness = await started()
      const id = ask('screenshot')
      await until(() => harness.client.requests().length === 1)
      server.features.failNext('acknowledgements', { status, code, retryable: false })
      await expect(harness.client.acknowledgeScreenshot(id, 'granted')).rejects.toMatchObject({ code })
      expect(harness.client.requests()).toEqual([])
      expect(lines(harness)).toEqual(expected)
      expect(acknowledgements(id)).toHaveLength(1)
    },
  )

  it('an agent’s request stays pending if the report of the visitor’s answer fails, and can be answered again', async () => {
    const harness = await started()
    const id = ask('screenshot')
    await until(() => harness.client.requests().length === 1)
    server.features.failNext('acknowledgements', { status: 400, code: 'ValidationFailed', retryable: false })
    await expect(harness.client.acknowledgeScreenshot(id, 'denied')).rejects.toMatchObject({ code: 'ValidationFailed' })
    await harness.client.acknowledgeScreenshot(id, 'denied')
    expect(server.features.commandState(id)).toBe('denied')
  })

  it.each(['navigation', 'screenshot'] as const)(
    'a %s request is answered as unsupported if the application does not declare support',
    async (kind) => {
      const harness = await started({})
      const id = ask(kind)
      await until(() => server.features.commandState(id) === 'unsupported')
      expect(harness.count(`${kind}.requested`)).toBe(0)
      expect(harness.client.requests()).toEqual([])
    },
  )

  it('an agent’s request is answered as unsupported if the capability is off', async () => {
    await restart({ capabilities: { navigation: false, screenshots: false } })
    const harness = await started()
    const id = ask('screenshot')
    await until(() => server.features.commandState(id) === 'unsupported')
    expect(harness.count('screenshot.requested')).toBe(0)
  })

  it('an agent’s request is not emitted again for a duplicate event', async () => {
    const harness = await started()
    const id = ask('screenshot')
    await until(() => harness.client.requests().length === 1)
    await harness.client.acknowledgeScreenshot(id, 'denied')
    const expiresAt = new Date(clock.now() + 100_000).toISOString()
    conversation().emit('screenshot.requested', { requestId: id, expiresAt })
    conversation().agentSays('Sorry')
    await until(() => harness.bodies().length === 1)
    expect(harness.client.requests()).toEqual([])
  })
})
