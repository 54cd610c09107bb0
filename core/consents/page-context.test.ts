import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { forAll } from '../../test/support/for-all.ts'
import { runs } from '../../test/support/is-long.ts'
import { anyCharacter, nastyTexts } from '../../test/support/nasty-values.ts'
import { until } from '../../test/support/until.ts'
import { findSession } from '../bans/bans.ts'
import { sendAsVisitor } from '../conversations/messages.ts'
import type { PageContext } from '../sessions/model.ts'
import { codeOf, testCores } from '../test/cores.ts'
import { site } from '../test/visitor-credentials.ts'
import { reportPage } from '../visitors/sessions.ts'
import { repairPageContext } from './observations.ts'

const url = 'https://shop.example/cart'
const kept = (context: PageContext, maxBytes = 4096) => repairPageContext(context, maxBytes)

/** Expects a context that may be stored. */
function expectValid(context: PageContext | undefined, maxBytes: number) {
  if (!context) return
  expect(Object.keys(context).length).toBeGreaterThan(0)
  expect(Buffer.byteLength(JSON.stringify(context))).toBeLessThanOrEqual(maxBytes)
  const { url = 'https://none.example/', title = 'none', referrer = 'https://none.example', viewport } = context
  const page = new URL(url)
  expect(page.href).toBe(url)
  expect(url).toMatch(/^https?:\/\/[^?#]+$/)
  expect(page.username + page.password).toBe('')
  expect(url.length).toBeLessThanOrEqual(2048)
  expect(new URL(referrer).origin).toBe(referrer)
  expect(title.isWellFormed()).toBe(true)
  expect(title).not.toMatch(/\p{Cc}|^$/u)
  expect([...title].length).toBeLessThanOrEqual(256)
  for (const pixels of viewport ? [viewport.width, viewport.height] : []) {
    expect(Number.isInteger(pixels) && pixels >= 0 && pixels <= 100_000).toBe(true)
  }
}

describe('repairPageContext', () => {
  it.each([
    ['https://shop.example/cart?token=secret&mail=a@b.example', url],
    ['https://shop.example/cart#access_token=secret', url],
    ['https://shop.example/cart?a=1#b=2', url],
    ['https://shop.example/cart#/route?q=1', url],
    ['https://ada:secret@shop.example/cart', url],
    ['HTTPS://SHOP.example:443/cart?', url],
    ['https://shop.example/ca\u0085rt\n\ud83d', url],
    ['http://shop.example:8080/a/../cart?x', 'http://shop.example:8080/cart'],
    ['https://shop.example?q=1', 'https://shop.example/'],
    ['https://shop.example/%3Fa=1', 'https://shop.example/%3Fa=1'],
    [`${url}?${'a'.repeat(9000)}`, url],
    [`${url}/${'a'.repeat(9000)}`, `${url}/`.padEnd(2048, 'a')],
    // A cut at exactly 2,048 characters would split the percent-encoded bytes of `ü`.
    [`https://shop.example/${'a'.repeat(2023)}ü-`, `https://shop.example/${'a'.repeat(2023)}`],
    [`https://shop.example/${'a'.repeat(2022)}ü-`, `https://shop.example/${'a'.repeat(2022)}`],
    [`https://shop.example/${'a'.repeat(2021)}ü-`, `https://shop.example/${'a'.repeat(2021)}%C3%BC`],
    [`https://shop.example/${'a'.repeat(2018)}😀`, `https://shop.example/${'a'.repeat(2018)}`],
  ])('removes query, fragment, user info and excess length from the URL %s', (reported, shown) => {
    expect(kept({ url: reported })).toEqual({ url: shown })
  })

  it.each([
    '',
    '/cart',
    'about:blank',
    'javascript:alert(1)',
    'file:///etc/passwd',
    'android-app://com.google.android.gm/',
    'https://',
    'https://:99999/',
    `https://${'a'.repeat(2100)}.example/`,
  ])('drops the URL and the referrer %s and keeps the title', (invalid) => {
    expect(kept({ url: invalid, referrer: invalid, title: 'Cart' })).toEqual({ title: 'Cart' })
    expect(kept({ url: invalid })).toBeUndefined()
  })

  it('keeps only the origin of a referrer', () => {
    const referrer = 'https://search.example:8443/results?q=my+illness#top'
    expect(kept({ url, referrer })).toEqual({ url, referrer: 'https://search.example:8443' })
    expect(kept({ url, referrer: '' })).toEqual({ url })
  })

  it.each([
    ['a C1 control character', 'Ca\u0085rt', 'Cart'],
    ['half an emoji at character 256', `${'x'.repeat(255)}😀`.slice(0, 256), 'x'.repeat(255)],
    ['257 emoji', '😀'.repeat(257), '😀'.repeat(256)],
    ['nothing but control characters', '\r\n\0', undefined],
  ])('repairs a title with %s', (_, title, shown) => {
    expect(kept({ url, title })).toEqual({ url, ...(shown !== undefined && { title: shown }) })
  })

  it.each([
    [{ width: 800, height: 600 }, true],
    [{ width: 0, height: 100_000 }, true],
    [{ width: 100_001, height: 1 }, false],
    [{ width: 1, height: -1 }, false],
    [{ width: 1, height: 0.5 }, false],
    [{ width: Number.NaN, height: 1 }, false],
  ])('keeps the viewport %j only if it is valid (%s)', (viewport, isKept) => {
    expect(kept({ url, viewport })).toEqual({ url, ...(isKept && { viewport }) })
  })

  it('drops unknown fields, then referrer, title and URL in this order until the rest fits', () => {
    const viewport = { width: 800, height: 600 }
    const context = { url, title: 'T'.repeat(50), referrer: 'https://search.example/', viewport, cookies: 'a=b' }
    const rest = { url, title: context.title, viewport }
    const bytes = (value: object) => JSON.stringify(value).length
    expect(kept(context)).toEqual({ ...rest, referrer: 'https://search.example' })
    expect(kept(context, bytes(rest))).toEqual(rest)
    expect(kept(context, bytes(rest) - 1)).toEqual({ url, viewport })
    expect(kept(context, bytes({ viewport }))).toEqual({ viewport })
  })

  it('returns a valid context or nothing for any input, and a second run changes nothing', () => {
    const text = fc.oneof(
      fc.string({ unit: anyCharacter }),
      fc.constantFrom(...nastyTexts),
      fc.webUrl({ withQueryParameters: true, withFragments: true }),
      fc
        .tuple(fc.string({ unit: anyCharacter }), fc.nat(3000))
        .map(([end, n]) => `https://a.example/${'é'.repeat(n)}${end}`),
    )
    const size = fc.record({ width: fc.double(), height: fc.oneof(fc.double(), fc.nat(200_000)) })
    const context = fc.record({ url: text, title: text, referrer: text, viewport: size }, { requiredKeys: ['url'] })
    forAll([context, fc.constantFrom(256, 4096)], runs(1_000, 10), (sent, maxBytes) => {
      const first = repairPageContext(sent, maxBytes)
      expectValid(first, maxBytes)
      if (first) expect(repairPageContext(first, maxBytes)).toEqual(first)
    })
  })
})

describe('a page report', () => {
  const cores = testCores({ started: false })

  it('replaces the previous report and its time, and a repeat with the same key changes nothing', async () => {
    const { sessionId, accessGrant } = await cores.newSession()
    const report = (pageContext: PageContext, idempotencyKey?: string) =>
      reportPage(cores.core, {
        credentials: { accessGrant, origin: site },
        pageContext,
        ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
      })
    const key = randomUUID()
    expect(await report({ url: `${url}?step=1` }, key)).toEqual({ replayed: false })
    const first = await findSession(cores.core, sessionId)
    expect(first.pageContext).toEqual({ url })
    cores.advance(60)
    await report({ url: 'https://shop.example/checkout' })
    // A late repeat of an earlier report must overwrite nothing.
    expect(await report({ url: `${url}?step=1` }, key)).toEqual({ replayed: true })
    const second = await findSession(cores.core, sessionId)
    expect(second.pageContext).toEqual({ url: 'https://shop.example/checkout' })
    expect(second.pageContextAt!.getTime() - first.pageContextAt!.getTime()).toBeGreaterThanOrEqual(60_000)
    expect(await codeOf(report({ url: 'https://shop.example/other' }, key))).toBe('IdempotencyConflict')
    // An invalid report must overwrite nothing.
    await report({ url: 'about:blank' })
    expect((await findSession(cores.core, sessionId)).pageContext).toEqual({ url: 'https://shop.example/checkout' })
  })

  it('is rejected if its key was used with other input, even if repair makes both inputs equal', async () => {
    const { accessGrant } = await cores.newSession()
    const report = (title: string) =>
      reportPage(cores.core, {
        credentials: { accessGrant, origin: site },
        pageContext: { url, title },
        idempotencyKey: 'key',
      })
    await report('Cart\u0085')
    expect(await report('Cart\u0085')).toEqual({ replayed: true })
    await expect(report('Cart')).rejects.toMatchObject({ code: 'IdempotencyConflict' })
  })

  it('is repaired and stored if it is part of a message request', async () => {
    const { sessionId, accessGrant } = await cores.newSession()
    const send = {
      credentials: { accessGrant, origin: site },
      clientOperationId: 'op',
      body: 'Hello',
      contentType: 'text',
    }
    const pageContext = { url: `${url}?token=secret`, referrer: 'https://search.example/?q=lamp', title: '\u0085' }
    await sendAsVisitor(cores.core, { ...send, pageContext })
    const kept = { url, referrer: 'https://search.example' }
    await until('the page', async () => (await findSession(cores.core, sessionId)).pageContext)
    expect((await findSession(cores.core, sessionId)).pageContext).toEqual(kept)
  })
})
