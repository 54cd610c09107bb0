import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { SendVisitorMessagesRequest } from '#proto/messaging/v1/messaging_pb.js'
import { runs } from '../../test/support/is-long.ts'
import { nastyTexts } from '../../test/support/nasty-values.ts'
import { message, startTestGateway } from '../test/test-gateway.ts'

const url = 'https://shop.example/'
const short = nastyTexts.filter((text) => text.length < 2000)
const anyText = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom(...short))
const anySize = fc.record({ width: fc.double({ noNaN: true, noDefaultInfinity: true }), height: fc.integer() })
const anyPage = fc.record(
  { url: anyText, title: anyText, referrer: anyText, viewport: anySize },
  { requiredKeys: ['url'] },
)

const create = (more: object) => ({ publicSiteKey: 'pk_demo', clientInstanceId: 'browser', ...more })

/** Starts a gateway. `sendAll` sends advisory fields to each route that accepts them. */
async function startSender() {
  const gateway = await startTestGateway({ env: { RATE_LIMIT_FACTOR: '10000' } })
  gateway.core.capabilities = { messageRetryRoute: true, pageContext: true }
  const { call } = gateway
  return {
    ...gateway,
    async sendAll(pageContext: object, locale: string) {
      const answers = await Promise.all([
        call('POST', '/sessions', { body: create({ locale, pageContext }) }),
        call('POST', '/messages', { body: message('op-1', { locale, pageContext }) }),
        call('POST', '/messages/op-1/retry', { body: message('op-1', { locale, pageContext }) }),
        call('POST', '/context/page', { body: pageContext }),
      ])
      return answers.map(({ status }) => status)
    },
  }
}

describe('advisory fields of a request', () => {
  test('may be any strings and numbers on every route', async () => {
    const { sendAll } = await startSender()
    await fc.assert(
      fc.asyncProperty(anyPage, anyText, async (pageContext, locale) => {
        expect(await sendAll(pageContext, locale)).toEqual([201, 202, 202, 204])
      }),
      runs(200, 20),
    )
  })

  test('are sent to the core without lone surrogates and without an invalid viewport', async () => {
    const { core, call } = await startTestGateway()
    await call('POST', '/sessions', {
      body: create({
        locale: 'de_DE',
        pageContext: { url, title: 'a\ud83d\u0085😀\udc00', viewport: { width: 1280.4, height: 720 } },
      }),
    })
    expect(core.calls.at(-1)?.request).toMatchObject({
      locale: 'de_DE',
      pageContext: { url, title: 'a\n😀', viewport: { width: 1280, height: 720 } },
    })
    for (const viewport of [
      { width: -1, height: 1 },
      { width: 1, height: 1e300 },
    ]) {
      await call('POST', '/context/page', { body: { url, viewport } })
      expect(core.calls.at(-1)?.request).not.toHaveProperty('pageContext.viewport')
    }
  })

  test('may contain a number beyond the range of a double', async () => {
    const { call } = await startTestGateway()
    const body = `{"url":"${url}","viewport":{"width":1e309,"height":1}}`
    expect((await call('POST', '/context/page', { body })).status).toBe(204)
  })

  test.each([
    ['no url', { title: 'Cart' }],
    ['a url that is a number', { url: 7 }],
    ['a title that is null', { url, title: null }],
    ['a referrer that is a list', { url, referrer: [] }],
    ['a viewport of text', { url, viewport: { width: '1', height: '2' } }],
    ['half a viewport', { url, viewport: { width: 1 } }],
    ['an unknown field', { url, cookies: 'a=b' }],
    ['more than 16 KiB', { url, title: 'x'.repeat(16 * 1024) }],
  ])('are rejected with %s on every route', async (_, pageContext) => {
    const { sendAll } = await startSender()
    expect(await sendAll(pageContext, 'en')).toEqual([400, 400, 400, 400])
  })

  test('are accepted up to 16 KiB', async () => {
    const { sendAll } = await startSender()
    const pageContext = { url, title: '', referrer: '' }
    pageContext.title = '€'.repeat(Math.floor((16 * 1024 - JSON.stringify(pageContext).length) / 3))
    expect(await sendAll(pageContext, 'en')).toEqual([201, 202, 202, 204])
  })
})

describe('a message body', () => {
  test.each([
    ['4,000 emoji', '😀'.repeat(4000), '😀'.repeat(4000)],
    ['CRLF and CR, which become LF', 'a\r\nb\rc', 'a\nb\nc'],
    ['4,000 code points, CRLF counted as one', `${'\r\n'.repeat(3999)}x`, `${'\n'.repeat(3999)}x`],
  ])('is accepted with %s', async (_, body, sent) => {
    const { call, core } = await startSender()
    expect((await call('POST', '/messages', { body: message('op-1', { body }) })).status).toBe(202)
    expect((await call('POST', '/messages/op-1/retry', { body: message('op-1', { body }) })).status).toBe(202)
    const sends = core.calls.flatMap(
      ({ request }) => (request as Partial<SendVisitorMessagesRequest> | undefined)?.messages ?? [],
    )
    expect(sends.map((each) => each.body)).toEqual([sent, sent])
  })

  test.each([[null], [[]], ['text'], [{ body: null }]])('is rejected if the JSON is %j', async (body) => {
    const { call } = await startSender()
    expect((await call('POST', '/messages', { body: JSON.stringify(body) })).status).toBe(400)
  })
})
