import { createHash } from 'node:crypto'
import { ConnectError } from '@connectrpc/connect'
import { expect } from 'vitest'
import { ErrorInfoSchema } from '#proto/error/v1/error_pb.js'
import { imageOf } from '../support/images.ts'
import type { TestDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { bearer } from './client.ts'
import { createCommandCalls, pathOf } from './command-calls.ts'
import { rule } from './rule.ts'
import type { Suite } from './suite.ts'

const maxBytes = 5 * 1024 * 1024
const outcomes = ['accepted', 'declined', 'completed', 'failed', 'unsupported']
const consents = ['granted', 'denied', 'unsupported']
const rfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** The test of each state of a command and each outcome, which makes many calls. */
export function commandStateRules(suite: () => Suite, database: TestDatabase): void {
  const { request, cancel, expire, acknowledge, expectRejection } = createCommandCalls(suite, database)

  rule('C3.23', async () => {
    const visitor = await suite().roomy.client.visitor()
    /**
     * One entry for each state of a navigation. `steps` lead to the state: reported outcomes, a
     * cancellation or an expiry. `next` are the outcomes that may be reported in this state. All
     * other outcomes are rejected with the error code `rejection`.
     */
    const navigations: [steps: string[], next: string[], rejection: string][] = [
      [[], ['accepted', 'declined', 'unsupported'], 'CommandAlreadyResolved'],
      [['accepted'], ['completed', 'failed'], 'CommandAlreadyResolved'],
      [['accepted', 'completed'], [], 'CommandAlreadyResolved'],
      [['accepted', 'failed'], [], 'CommandAlreadyResolved'],
      [['declined'], [], 'CommandAlreadyResolved'],
      [['unsupported'], [], 'CommandAlreadyResolved'],
      [['cancelled'], [], 'CommandAlreadyResolved'],
      [['expired'], [], 'CommandExpired'],
    ]
    const screenshots: typeof navigations = [
      [[], ['granted', 'denied', 'unsupported'], 'CommandAlreadyResolved'],
      [['granted'], [], 'CommandAlreadyResolved'],
      [['denied'], [], 'CommandAlreadyResolved'],
      [['unsupported'], [], 'CommandAlreadyResolved'],
      [['cancelled'], [], 'CommandAlreadyResolved'],
      [['expired'], [], 'CommandExpired'],
    ]
    const check = async (kind: 'navigation' | 'screenshots', states: typeof navigations, words: string[]) => {
      const nameOfId = kind === 'navigation' ? 'commandId' : 'requestId'
      for (const [steps, next, rejection] of states) {
        // Skips outcomes that were already reported, because repeating an outcome is always allowed.
        for (const word of words.filter((each) => !steps.includes(each))) {
          const id = await request(kind, visitor)
          for (const step of steps) {
            if (step === 'cancelled') await cancel(id)
            else if (step === 'expired') await expire(id)
            else await acknowledge(visitor, kind, id, step)
          }
          if (next.includes(word)) {
            const { status, body } = await acknowledge(visitor, kind, id, word)
            expect([steps, word, status]).toEqual([steps, word, 200])
            expect(body).toMatchObject({ [nameOfId]: id, state: word })
          } else await expectRejection(rejection, visitor, kind, id, word)
        }
      }
    }
    await check('navigation', navigations, outcomes)
    await check('screenshots', screenshots, consents)
  })
}

/** Tests of contract sections 3 and 4: commands to the visitor's page. */
export function commandRules(suite: () => Suite, database: TestDatabase): void {
  const { request, cancel, expire, acknowledge, expectRejection, upload, expectUploadRejection, requestGranted } =
    createCommandCalls(suite, database)

  rule('C3.27', async () => {
    const visitor = await suite().roomy.client.visitor()
    for (const [kind, words] of [
      ['navigation', ['accepted', 'declined', 'unsupported']],
      ['screenshots', consents],
    ] as const) {
      for (const word of words) {
        const id = await request(kind, visitor)
        const first = await acknowledge(visitor, kind, id, word)
        const again = await acknowledge(visitor, kind, id, word)
        expect([again.status, again.body]).toEqual([200, first.body])
      }
    }
    const id = await request('navigation', visitor)
    await acknowledge(visitor, 'navigation', id, 'accepted')
    for (let times = 0; times < 2; times += 1)
      expect((await acknowledge(visitor, 'navigation', id, 'completed')).body).toEqual({
        commandId: id,
        state: 'completed',
      })
  })

  rule('C3.28', async () => {
    const { client, operator, stack } = suite().roomy
    const { session } = await client.visitor()
    const { sessionId } = session
    for (const url of [
      'javascript:alert(1)',
      'data:text/html,x',
      'https://evil.example/',
      `${stack.demo.origin}.evil.example/`,
      'http://localhost:1/',
      '/pricing',
      'http://user:secret@localhost:8081/',
      'java\nscript:alert(1)',
      'http://localhost:8081\\@evil.example/',
    ]) {
      const error = await operator.commands.requestNavigation({ sessionId, url }).catch(ConnectError.from)
      expect((error as ConnectError).findDetails?.(ErrorInfoSchema)[0], url).toMatchObject({
        code: 'ValidationFailed',
        issues: [{ path: '/url' }],
      })
    }
    const label = 'Prices\r\n\r\nevent: session.revoked'
    const url = `${stack.demo.origin}/`
    const refused = await operator.commands.requestNavigation({ sessionId, url, label }).catch(ConnectError.from)
    expect((refused as ConnectError).findDetails?.(ErrorInfoSchema)[0]?.issues[0]?.path).toBe('/label')
    expect((await operator.commands.listCommands({ sessionId })).commands).toEqual([])
    const { command } = await operator.commands.requestNavigation({ sessionId, url: `${stack.demo.origin}/a?b=c#d` })
    expect(command?.state).toBe('requested')
  })

  rule('C3.29', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    const requestId = await request('screenshots', visitor)
    const consented = await acknowledge(visitor, 'screenshots', requestId, 'granted')
    expect(consented.body).toEqual({
      requestId,
      state: 'granted',
      upload: {
        maxBytes,
        contentTypes: ['image/png', 'image/jpeg', 'image/webp'],
        expiresAt: expect.stringMatching(rfc3339),
      },
    })
    await expectUploadRejection('PayloadTooLarge', visitor, requestId, imageOf('image/png', maxBytes + 1))
    for (const [type, bytes] of [
      ['image/jpeg', imageOf('image/png', 100)],
      ['image/png', imageOf('image/webp', 100)],
      ['image/webp', imageOf('image/jpeg', 100)],
      ['image/webp', Buffer.from('RIFF')],
      ['image/png', Buffer.from('<!doctype html><script>alert(1)</script>')],
    ] as const)
      await expectUploadRejection('ValidationFailed', visitor, requestId, bytes, type)
    for (const type of ['image/gif', 'image/svg+xml', 'application/json', 'text/plain'])
      await expectUploadRejection('UnsupportedMediaType', visitor, requestId, imageOf('image/png', 100), type)
    const bytes = imageOf('image/png', maxBytes)
    const answer = await upload(visitor, requestId, bytes)
    expect([answer.status, answer.body]).toEqual([
      201,
      {
        requestId,
        state: 'uploaded',
        byteLength: maxBytes,
        sha256: createHash('sha256').update(bytes).digest('hex'),
      },
    ])
    await expectUploadRejection('CommandAlreadyResolved', visitor, requestId, bytes)
    for (const type of ['image/jpeg', 'image/webp'] as const)
      expect((await upload(visitor, await requestGranted(visitor), imageOf(type, 100), type)).status).toBe(201)
  })

  rule('C3.30', async () => {
    const { client, stack } = suite().roomy
    const visitor = await client.visitor()
    const id = await requestGranted(visitor)
    const headers = { ...bearer(visitor), 'content-type': 'image/png', 'idempotency-key': 'upload' }
    const path = `/commands/screenshots/${id}/upload`
    const body = imageOf('image/png', 200_000)
    const first = await client.call('POST', path, { headers, body })
    const again = await client.call('POST', path, { headers, body, via: stack.gateways[1]!.url })
    expect([again.status, again.body]).toEqual([201, first.body])
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    await client.fails('IdempotencyConflict', 'POST', path, { headers, body: imageOf('image/png', 200_000) })

    const other = await request('navigation', visitor)
    for (const [to, name, word, otherWord] of [
      [pathOf('navigation', other), 'outcome', 'accepted', 'declined'],
      [pathOf('screenshots', await request('screenshots', visitor)), 'consent', 'granted', 'denied'],
    ] as const) {
      const key = { ...bearer(visitor), 'idempotency-key': `decision-${name}` }
      const decision = { headers: key, body: { [name]: word } }
      expect((await client.call('POST', to, decision)).headers.get('idempotency-replayed'), to).toBeNull()
      expect((await client.call('POST', to, decision)).headers.get('idempotency-replayed'), to).toBe('true')
      await client.fails('IdempotencyConflict', 'POST', to, { headers: key, body: { [name]: otherWord } })
    }
    for (const wrong of [{}, { outcome: 'yes' }, { outcome: 'accepted', x: 1 }, { consent: 'granted' }])
      await client.fails('ValidationFailed', 'POST', pathOf('navigation', other), {
        headers: bearer(visitor),
        body: wrong,
      })
    for (const wrong of [{}, { consent: 'yes' }, { consent: 'granted', x: 1 }, { outcome: 'accepted' }])
      await client.fails('ValidationFailed', 'POST', pathOf('screenshots', id), {
        headers: bearer(visitor),
        body: wrong,
      })
  })

  rule('C4.32', async () => {
    const { client, operator, stack } = suite().roomy
    const visitor = await client.visitor()
    const { sessionId } = visitor.session
    const stream = await visitor.openStream({ via: stack.gateways[1]!.url })
    const url = `${stack.demo.origin}/pricing?plan=pro`
    const { command } = await operator.commands.requestNavigation({ sessionId, url, label: 'Our prices' })
    const requestId = await request('screenshots', visitor)
    const { commandId } = command!
    await cancel(commandId)
    await cancel(requestId)
    await until('four events', () => stream.events.length === 4)
    const expiresAt = expect.stringMatching(rfc3339)
    expect(stream.events.map(({ type, data }) => [type, data])).toEqual([
      ['navigation.requested', { commandId, url, label: 'Our prices', expiresAt }],
      ['screenshot.requested', { requestId, purpose: 'To see it', expiresAt }],
      ['navigation.cancelled', { commandId }],
      ['screenshot.cancelled', { requestId }],
    ])
    const life = Date.parse(stream.events[0]!.data.expiresAt) - Date.now()
    expect(life).toBeGreaterThan(100_000)
    expect(life).toBeLessThanOrEqual(120_000)
    stream.close()
  })

  rule('E.ConsentRequired', async () => {
    const visitor = await suite().roomy.client.visitor()
    for (const word of [undefined, 'denied', 'unsupported']) {
      const id = await request('screenshots', visitor)
      if (word) await acknowledge(visitor, 'screenshots', id, word)
      await expectUploadRejection('ConsentRequired', visitor, id, imageOf('image/png', 100))
    }
  })

  rule('E.CommandNotFound', async () => {
    const { client } = suite().roomy
    const [visitor, stranger] = [await client.visitor(), await client.visitor()]
    const commandId = await request('navigation', visitor)
    const requestId = await requestGranted(visitor)
    await expectRejection('CommandNotFound', stranger, 'navigation', commandId, 'accepted')
    await expectRejection('CommandNotFound', stranger, 'screenshots', requestId, 'denied')
    await expectUploadRejection('CommandNotFound', stranger, requestId, imageOf('image/png', 100))
    await expectRejection('CommandNotFound', visitor, 'screenshots', commandId, 'granted')
    await expectRejection('CommandNotFound', visitor, 'navigation', requestId, 'accepted')
    await expectRejection('CommandNotFound', visitor, 'navigation', 'cmd_none', 'accepted')
    expect((await acknowledge(visitor, 'navigation', commandId, 'accepted')).status).toBe(200)
  })

  rule('E.CommandAlreadyResolved', async () => {
    const visitor = await suite().roomy.client.visitor()
    const id = await request('navigation', visitor)
    await acknowledge(visitor, 'navigation', id, 'declined')
    await expectRejection('CommandAlreadyResolved', visitor, 'navigation', id, 'accepted')
  })

  rule('E.CommandExpired', async () => {
    const visitor = await suite().roomy.client.visitor()
    const id = await request('navigation', visitor)
    await expire(id)
    await expectRejection('CommandExpired', visitor, 'navigation', id, 'accepted')
    const requestId = await requestGranted(visitor)
    await expire(requestId)
    await expectUploadRejection('CommandExpired', visitor, requestId, imageOf('image/png', 100))
  })
}
