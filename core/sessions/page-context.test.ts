import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { testDatabase } from '../../test/support/test-database.ts'
import { until } from '../../test/support/until.ts'
import { site, startTestCores, type TestCores } from '../test-core-context.ts'
import { minimisePageContext, type PageContext, pageContextIssues } from './page-context.ts'

const url = 'https://shop.example/cart'
const rulesBrokenBy = (context: PageContext) =>
  pageContextIssues('', context, 4096).flatMap((issue) => (issue ? [`${issue.path} ${issue.rule}`] : []))

describe('a page context', () => {
  it.each([
    ['https://shop.example/cart?token=secret&mail=a@b.example', url],
    ['https://shop.example/cart#access_token=secret', url],
    ['https://shop.example/cart?a=1#b=2', url],
    ['https://shop.example/cart#/route?q=1', url],
    ['HTTPS://SHOP.example:443/cart?', url],
    ['http://shop.example:8080/a/../cart?x', 'http://shop.example:8080/cart'],
    ['https://shop.example?q=1', 'https://shop.example/'],
    ['https://shop.example/%3Fa=1', 'https://shop.example/%3Fa=1'],
  ])('of %s keeps %s', (reported, kept) => {
    expect(minimisePageContext({ url: reported })).toEqual({ url: kept })
  })

  it('keeps of a referrer nothing but its origin, and of an empty one nothing', () => {
    const referrer = 'https://search.example:8443/results?q=my+illness#top'
    expect(minimisePageContext({ url, referrer })).toEqual({ url, referrer: 'https://search.example:8443' })
    expect(minimisePageContext({ url, referrer: '' })).toEqual({ url })
  })

  it('keeps title and viewport, and nothing else that came along', () => {
    const context = { url, title: 'Cart', viewport: { width: 800, height: 600 }, cookies: 'a=b' }
    expect(minimisePageContext(context)).toEqual({ url, title: 'Cart', viewport: { width: 800, height: 600 } })
  })

  it.each<[string, PageContext, string]>([
    ['another scheme', { url: 'javascript:alert(1)' }, '/url format'],
    ['a file', { url: 'file:///etc/passwd' }, '/url format'],
    ['user info', { url: 'https://ada:secret@shop.example/' }, '/url format'],
    ['no url at all', { url: '' }, '/url format'],
    ['a url that is too long', { url: `${url}?${'a'.repeat(2048)}` }, '/url maxLength'],
    ['a title that is too long', { url, title: 'a'.repeat(257) }, '/title maxLength'],
    ['a title with a control character', { url, title: 'a\u0000' }, '/title pattern'],
    ['a referrer of another scheme', { url, referrer: 'data:text/html,x' }, '/referrer format'],
    ['a viewport that no screen has', { url, viewport: { width: 100_001, height: 1 } }, '/viewport/width maximum'],
    ['more than 4 KiB', { url, title: 'ü'.repeat(256), referrer: `${url}/${'ü'.repeat(1900)}` }, ' maxBytes'],
  ])('with %s is refused', (_, context, rule) => {
    expect(rulesBrokenBy(context)).toContain(rule)
  })
})

describe('a report of the page', () => {
  const database = testDatabase()
  let cores: TestCores
  beforeAll(async () => {
    cores = await startTestCores(database)
  })
  afterAll(() => cores.stop())

  it('is kept with its time, the latest one only, and once for each key', async () => {
    const { sessionId, accessGrant } = await cores.newSession()
    const report = (pageContext: PageContext, idempotencyKey?: string) =>
      cores.core.sessions.reportPage({
        credentials: { accessGrant, origin: site },
        pageContext,
        ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
      })
    const key = randomUUID()
    expect(await report({ url: `${url}?step=1` }, key)).toEqual({ replayed: false })
    const first = await cores.core.sessions.find(sessionId)
    expect(first.pageContext).toEqual({ url })
    cores.advance(60)
    await report({ url: 'https://shop.example/checkout' })
    // Late, and no news.
    expect(await report({ url: `${url}?step=1` }, key)).toEqual({ replayed: true })
    const second = await cores.core.sessions.find(sessionId)
    expect(second.pageContext).toEqual({ url: 'https://shop.example/checkout' })
    expect(second.pageContextAt!.getTime() - first.pageContextAt!.getTime()).toBeGreaterThanOrEqual(60_000)
    await expect(report({ url: 'https://shop.example/other' }, key)).rejects.toMatchObject({
      code: ErrorCode.IDEMPOTENCY_CONFLICT,
    })
    await expect(report({ url: 'about:blank' })).rejects.toMatchObject({ code: ErrorCode.VALIDATION_FAILED })
    expect((await cores.core.sessions.find(sessionId)).pageContext).toEqual({ url: 'https://shop.example/checkout' })
  })

  it('comes with a message too, minimised', async () => {
    const { sessionId, accessGrant } = await cores.newSession()
    const send = {
      credentials: { accessGrant, origin: site },
      clientOperationId: 'op',
      body: 'Hello',
      contentType: 'text',
    }
    const pageContext = { url: `${url}?token=secret`, referrer: 'https://search.example/?q=lamp' }
    await cores.core.messages.sendAsVisitor({ ...send, pageContext })
    const kept = { url, referrer: 'https://search.example' }
    await until('the page', async () => (await cores.core.sessions.find(sessionId)).pageContext)
    expect((await cores.core.sessions.find(sessionId)).pageContext).toEqual(kept)
  })
})
