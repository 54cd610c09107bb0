import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { forAllAsync } from '../../test/support/for-all.ts'
import { runs } from '../../test/support/is-long.ts'
import { anyCharacter, nastyTexts } from '../../test/support/nasty-values.ts'
import { message, startTestGateway } from '../test/test-gateway.ts'

const url = 'https://shop.example/'
const short = nastyTexts.filter((text) => text.length < 2000)
const anyText = fc.oneof(fc.string({ unit: anyCharacter }), fc.constantFrom(...short))
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
    await forAllAsync([anyPage, anyText], runs(200, 20), async (pageContext, locale) => {
      expect(await sendAll(pageContext, locale)).toEqual([201, 202, 202, 204])
    })
  })

  test('are accepted up to 16 KiB', async () => {
    const { sendAll } = await startSender()
    const pageContext = { url, title: '', referrer: '' }
    pageContext.title = '€'.repeat(Math.floor((16 * 1024 - JSON.stringify(pageContext).length) / 3))
    expect(await sendAll(pageContext, 'en')).toEqual([201, 202, 202, 204])
  })
})
