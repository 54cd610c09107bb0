import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import type { Visitor } from '../support/visitor.ts'
import { bearer, message } from './client.ts'
import { rule } from './rule.ts'
import type { Suite } from './suite.ts'

/** Tests of contract section 3: page context. */
export function pageContextRules(suite: () => Suite): void {
  const contextOf = async ({ session: { sessionId } }: Visitor) =>
    (await suite().roomy.operator.sessions.getSession({ sessionId })).session?.pageContext

  rule('C3.20', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    const body = {
      url: 'https://shop.example/cart?coupon=x#top',
      title: 'Cart',
      referrer: 'https://search.example/find?q=x',
      viewport: { width: 800, height: 600 },
    }
    const answer = await client.call('POST', '/context/page', {
      headers: { ...bearer(visitor), 'idempotency-key': null },
      body,
    })
    expect([answer.status, answer.text]).toEqual([204, ''])
    expect(await contextOf(visitor)).toMatchObject({
      url: 'https://shop.example/cart',
      title: 'Cart',
      referrer: 'https://search.example',
      viewport: { width: 800, height: 600 },
    })
    await client.call('POST', '/context/page', { headers: bearer(visitor), body: { url: 'https://shop.example/b?c' } })
    expect((await contextOf(visitor))?.url).toBe('https://shop.example/b')
    // Query and fragment are also removed if the page context is sent when a session is created.
    const { body: session } = await client.call('POST', '/sessions', {
      body: { publicSiteKey: suite().roomy.stack.demo.siteKey, clientInstanceId: 'i', pageContext: body },
    })
    visitor.session = session
    expect((await contextOf(visitor))?.url).toBe('https://shop.example/cart')
  })

  rule('C3.31', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    const url = 'https://shop.example/'
    const bad = [
      {},
      { url: 7 },
      { url, title: null },
      { url, viewport: { width: '1', height: 1 } },
      { url, viewport: { width: 1 } },
      { url, cookies: 'x' },
      { url, title: 'x'.repeat(16 * 1024) },
    ]
    for (const context of bad) {
      const headers = bearer(visitor)
      await client.fails('ValidationFailed', 'POST', '/context/page', { headers, body: context })
      const id = randomUUID()
      await client.fails('ValidationFailed', 'POST', '/messages', {
        headers: { ...headers, 'idempotency-key': id },
        body: message(id, { pageContext: context }),
      })
      await client.fails('ValidationFailed', 'POST', '/sessions', {
        body: { publicSiteKey: suite().roomy.stack.demo.siteKey, clientInstanceId: 'i', pageContext: context },
      })
    }
  })

  rule('C3.38', async () => {
    const { client, operator, stack } = suite().roomy
    const url = 'https://shop.example/'
    const long = 'ü'.repeat(2500)
    const cases: [sent: object, stored: object][] = [
      [
        { url: 'android-app://com.google.android.gm/', title: 'Cart' },
        { url: '', title: 'Cart' },
      ],
      [{ url, referrer: 'android-app://com.google.android.gm/' }, { url }],
      [
        { url, title: 'Ca\u0085rt\r\n' },
        { url, title: 'Cart' },
      ],
      [
        { url, title: `${'x'.repeat(255)}\ud83d` },
        { url, title: 'x'.repeat(255) },
      ],
      [
        { url, title: '😀'.repeat(257) },
        { url, title: '😀'.repeat(256) },
      ],
      [{ url: `https://ada:secret@shop.example/?q=${long}` }, { url }],
      [{ url: `${url}${'x'.repeat(3000)}` }, { url: url.padEnd(2048, 'x') }],
      [{ url, viewport: { width: -1, height: 1e9 } }, { url }],
    ]
    for (const [sent, stored] of cases) {
      const { body: session } = await client.call('POST', '/sessions', {
        body: { publicSiteKey: stack.demo.siteKey, clientInstanceId: 'i', locale: 'de_DE', pageContext: sent },
      })
      const found = (await operator.sessions.getSession({ sessionId: session.sessionId })).session!
      expect(found).toMatchObject({ locale: 'de-DE', pageContext: stored })
      for (const name of ['title', 'referrer', 'viewport'])
        expect(name in found.pageContext!, `${name} of ${JSON.stringify(sent).slice(0, 80)}`).toBe(name in stored)

      const visitor = await client.visitor()
      const headers = { ...bearer(visitor), 'idempotency-key': 'op' }
      const report = await client.call('POST', '/context/page', { headers: bearer(visitor), body: sent })
      const body = message('op', { locale: 'no locale', pageContext: sent })
      expect([report.status, (await client.call('POST', '/messages', { headers, body })).status]).toEqual([204, 202])
      expect(await contextOf(visitor)).toMatchObject(stored)
      expect((await visitor.history())[0]).not.toHaveProperty('locale')
    }
  })
}
