import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import {
  bubbles,
  expectEachOnce,
  field,
  openChat,
  openShop,
  type Shop,
  soon,
  statusLineOf,
  untilOnline,
  untilSent,
  write,
} from '../support/shop.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'

const database = testDatabase()
const stream = /^GET \S+\/widget\/events/
/** Message states that the page may show only after the service has reported them. */
const reportedStates = /Sent|Delivered|Read/
let shop: Shop

beforeAll(async () => {
  shop = await openShop(database)
})
afterEach(() => shop.network.mend())

describe('a visitor with a bad network', () => {
  it('can write while offline: messages are pending, and are sent once when the network returns', async () => {
    const visit = await shop.visit()
    const { page, context } = visit
    await openChat(page)
    await write(page, 'before')
    await untilSent(page, 'before')
    await context.setOffline(true)
    await write(page, 'written offline')
    await write(page, 'and another')
    await expect.poll(() => bubbles(page), soon).toEqual(['before', 'written offline', 'and another'])
    await page.getByText('Connection lost. Reconnecting…').waitFor()
    for (const body of ['written offline', 'and another'])
      expect(await statusLineOf(page, body)).not.toMatch(reportedStates)
    await shop.agentSays((await visit.session()).conversationId, 'said meanwhile')
    expect((await shop.messagesOf((await visit.session()).conversationId)).map(({ body }) => body)).toEqual([
      'before',
      'said meanwhile',
    ])

    await context.setOffline(false)
    await untilSent(page, 'and another')
    await untilOnline(page)
    await expectEachOnce(shop, visit, ['before', 'said meanwhile', 'written offline', 'and another'])
    expect(visit.complaints).toEqual([])
    await context.close()
  })

  it('sees a message once if the response and the stream are lost', async () => {
    const visit = await shop.visit('/lamps')
    const { page, context } = visit
    await openChat(page)
    await write(page, 'before')
    await untilSent(page, 'before')
    const answers: { status: number; replayed: string | undefined; key: string | undefined }[] = []
    await page.route('**/widget/messages', async (route) => {
      if (route.request().method() !== 'POST') return route.continue()
      const response = await route.fetch()
      answers.push({
        status: response.status(),
        replayed: response.headers()['idempotency-replayed'],
        key: route.request().headers()['idempotency-key'],
      })
      if (answers.length === 1) return route.abort('connectionreset')
      return route.fulfill({ response })
    })
    shop.network.freezeAnswers(stream)
    await write(page, 'stored, and unanswered')
    await page.getByText(/Trying again…$/).waitFor()
    expect(await statusLineOf(page, 'stored, and unanswered')).not.toMatch(reportedStates)
    await untilSent(page, 'stored, and unanswered')
    shop.network.mend()

    expect(answers).toEqual([
      { status: 202, replayed: undefined, key: answers[0]?.key },
      { status: 202, replayed: 'true', key: answers[0]?.key },
    ])
    await untilOnline(page)
    await expectEachOnce(shop, visit, ['before', 'stored, and unanswered'])
    expect(visit.complaints).toEqual([])
    await context.close()
  })

  it('sees that the connection is lost when the stream falls silent, can send meanwhile, and later gets every message', async () => {
    const visit = await shop.visit('/account')
    const { page, context } = visit
    await openChat(page)
    await write(page, 'before')
    await untilSent(page, 'before')
    await untilOnline(page)
    await until('an open stream', () => {
      shop.network.freezeAnswers(stream)
      return shop.network.count(stream) > 0
    })
    await shop.agentSays((await visit.session()).conversationId, 'into the silence')
    await page.getByText('Connection lost. Reconnecting…').waitFor()
    await write(page, 'sending still works')
    await untilSent(page, 'sending still works')
    expect(await bubbles(page)).toEqual(['before', 'sending still works'])

    shop.network.mend()
    await page.getByText('into the silence').waitFor()
    await untilOnline(page)
    await shop.agentSays((await visit.session()).conversationId, 'live again')
    await page.getByText('live again').waitFor()
    await expectEachOnce(shop, visit, ['before', 'into the silence', 'sending still works', 'live again'])
    expect(visit.complaints).toEqual([])
    await context.close()
  })

  it('can reload the page during a send: a message that was accepted is not sent again, and a message that was not accepted is sent', async () => {
    const visit = await shop.visit('/lamps')
    const { page, context } = visit
    await openChat(page)
    let isStored = false
    let isReloaded = false
    await page.route('**/widget/messages', async (route) => {
      if (route.request().method() !== 'POST') return route.continue()
      if (isReloaded) return route.continue()
      // The service accepts the first message, but the page gets no response before the reload. On
      // a slow machine, the page may repeat the request. The repeats get no response either.
      if (isStored) return
      await route.fetch()
      isStored = true
    })
    shop.network.freezeAnswers(stream)
    await write(page, 'stored, the page does not know')
    await until('the message to be stored', () => isStored)
    await write(page, 'still in the outbox')
    await expect.poll(() => bubbles(page), soon).toEqual(['stored, the page does not know', 'still in the outbox'])
    for (const body of ['stored, the page does not know', 'still in the outbox'])
      expect(await statusLineOf(page, body)).not.toMatch(reportedStates)
    shop.network.mend()
    isReloaded = true
    await page.reload()

    await untilSent(page, 'still in the outbox')
    await expectEachOnce(shop, visit, ['stored, the page does not know', 'still in the outbox'])
    expect(await field(page).isEditable()).toBe(true)
    expect(visit.complaints).toEqual([])
    await context.close()
  })
})
