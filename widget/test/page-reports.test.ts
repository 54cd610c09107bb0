import { beforeEach, describe, expect, it } from 'vitest'
import type { PageContext } from '../src/vocabulary/types.ts'
import { createClientHarness, fetchFromPage, settled, until } from './client-harness.ts'
import { serverPerTest } from './server-per-test.ts'

const { clock, server, restart } = serverPerTest()
let page: PageContext
beforeEach(() => {
  page = { url: 'http://shop.test/', title: 'Shop' }
})

async function started(config?: Record<string, unknown>) {
  if (config) await restart(config)
  const harness = createClientHarness(server, 'pk_friendly', { clock, options: { pageContext: () => page } })
  await harness.started()
  return harness
}

const reports = () => server.seen('POST /context/page').map(({ body }) => body)

describe('page reports', () => {
  it('the visitor’s page is reported after a delay if it has changed', async () => {
    const { client } = await started()
    expect(reports()).toEqual([])
    page = { url: 'http://shop.test/lamps', title: 'Shop' }
    client.updatePageContext()
    page.title = 'Lamps'
    clock.advance(500)
    await until(() => reports().length === 1)
    await settled()
    client.updatePageContext()
    clock.advance(5_000)
    await settled()
    expect(reports()).toEqual([{ url: 'http://shop.test/lamps', title: 'Lamps' }])
  })

  it('the visitor’s page is reported without query and fragment, and with only the origin of the referrer', async () => {
    const { client } = await started()
    client.updatePageContext({
      url: 'http://shop.test/cart?token=secret#pay',
      title: '😀'.repeat(9_000),
      referrer: 'https://mail.test/inbox?id=7',
      viewport: { width: 390, height: 844 },
    })
    clock.advance(500)
    await until(() => reports().length === 1)
    expect(reports()).toEqual([
      {
        url: 'http://shop.test/cart',
        title: '😀'.repeat(256),
        referrer: 'https://mail.test',
        viewport: { width: 390, height: 844 },
      },
    ])
  })

  it('only the last of many pages that change quickly is reported', async () => {
    const { client } = await started()
    for (let number = 1; number <= 50; number += 1) {
      client.updatePageContext({ url: `http://shop.test/${number}` })
      clock.advance(100)
    }
    clock.advance(5_000)
    await settled()
    expect(reports()).toEqual([{ url: 'http://shop.test/50' }])
  })

  it('the visitor’s page is not reported if the capability is off or its URL is neither http nor https', async () => {
    const { client } = await started({ capabilities: { pageContext: false } })
    client.updatePageContext({ url: 'http://shop.test/secret' })
    clock.advance(5_000)
    client.stop()
    const other = await started({})
    for (const url of ['file:///home/ada/shop.html', 'blob:http://shop.test/1', 'nonsense']) {
      other.client.updatePageContext({ url })
      clock.advance(5_000)
    }
    await settled()
    expect(reports()).toEqual([])
  })

  it('a failed page report emits no error and is not retried; the next call of updatePageContext reports the page', async () => {
    const { client, count } = await started()
    server.features.failNext('/context/page', { status: 503, code: 'ServiceUnavailable' })
    client.updatePageContext({ url: 'http://shop.test/a' })
    clock.advance(500)
    await until(() => reports().length === 1)
    await settled()
    clock.advance(60_000)
    await settled()
    expect(reports()).toHaveLength(1)
    client.updatePageContext({ url: 'http://shop.test/a' })
    clock.advance(3_000)
    await until(() => reports().length === 2)
    expect(count('error')).toBe(0)
  })
})

it('a receipt that failed is repeated while the stream runs, and ends after eight attempts', async () => {
  let isBroken = true
  let failed = 0
  const { client, clock } = createClientHarness(server, 'pk_friendly', {
    options: {
      platform: {
        async fetch(input, init) {
          if (!isBroken || !String(input).endsWith('/messages/receipts')) return fetchFromPage(input, init)
          failed += 1
          throw new TypeError('Load failed')
        },
      },
    },
  })
  void client.start()
  await until(() => client.connection() === 'online')
  const received = () => server.seen('POST /messages/receipts').map(({ body }) => body?.state)
  const pass = () => clock.advance(100)
  server.conversation('pk_friendly').agentSays('Yes, we do.')
  await until(() => failed === 2, pass)
  isBroken = false
  await until(() => received().includes('delivered'), pass)
  isBroken = true
  client.markRead()
  await until(() => failed === 4, pass)
  isBroken = false
  await until(() => received().includes('read'), pass)
  expect(received()).toEqual(['delivered', 'read'])
  // A new stream would repeat it too.
  expect(server.seen('GET /events')).toHaveLength(1)

  isBroken = true
  failed = 0
  server.conversation('pk_friendly').agentSays('To Graz too.')
  await until(() => failed === 8, pass)
  clock.advance(600_000)
  await settled()
  expect(failed).toBe(8)
})
