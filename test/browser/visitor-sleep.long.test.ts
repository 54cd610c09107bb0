import { beforeAll, expect, it } from 'vitest'
import {
  expectEachOnce,
  openChat,
  openShop,
  type Shop,
  type ShopVisit,
  soon,
  untilOnline,
  untilSent,
  write,
} from '../support/shop.ts'
import { freeze } from '../support/tab-visibility.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'

/** Lifetimes in seconds, shorter than the defaults of 15 minutes and 2 hours. */
const grantLifetime = 6
const renewable = 10
/** Simulates a sleep of 20 minutes: a third longer than the lifetime of a grant. */
const nap = (grantLifetime * 4) / 3
/** Simulates a sleep of three hours: longer than the session can be renewed. */
const night = grantLifetime + renewable + 1

const database = testDatabase()
let shop: Shop

beforeAll(async () => {
  const coreEnv = { GRANT_LIFETIME_SECONDS: `${grantLifetime}`, SESSION_RENEWABLE_SECONDS: `${renewable}` }
  shop = await openShop(database, { coreEnv })
})

/**
 * Simulates a closed laptop: freezes the page and disconnects its network for `seconds` seconds.
 * Runs `meanwhile` during this time.
 */
async function asleep({ page, context }: ShopVisit, seconds: number, meanwhile: () => Promise<unknown>) {
  const { thaw } = await freeze(page)
  await context.setOffline(true)
  await passTime(seconds, meanwhile)
  await context.setOffline(false)
  await thaw()
}

async function passTime(seconds: number, meanwhile: () => Promise<unknown>) {
  const wakesAt = Date.now() + seconds * 1000
  await meanwhile()
  await until('the end of the sleep', () => Date.now() >= wakesAt, 100)
}

const stateOf = async (sessionId: string) => (await shop.operator.sessions.getSession({ sessionId })).session?.state

async function begin(path: string) {
  const visit = await shop.visit(path)
  await openChat(visit.page)
  await write(visit.page, 'before')
  await untilSent(visit.page, 'before')
  return { visit, session: await visit.session() }
}

/**
 * Each scenario shows what happens to a visitor whose laptop sleeps. All scenarios run at the same
 * time.
 */
const scenarios: Record<string, () => Promise<void>> = {
  async wakesAfter20Minutes() {
    const { visit, session } = await begin('/')
    const { page, context } = visit
    await asleep(visit, nap, () => shop.agentSays(session.conversationId, 'said meanwhile'))
    await page.getByText('said meanwhile').waitFor()
    await untilOnline(page)
    await write(page, 'after')
    await untilSent(page, 'after')
    await expectEachOnce(shop, visit, ['before', 'said meanwhile', 'after'])
    expect((await visit.session()).sessionId).toBe(session.sessionId)
    expect(await stateOf(session.sessionId)).toBe('active')
    expect(visit.complaints).toEqual([])
    await context.close()
  },

  async reloadsAfter20Minutes() {
    const { visit, session } = await begin('/lamps')
    const { page, context } = visit
    await page.goto('about:blank')
    await passTime(nap, () => shop.agentSays(session.conversationId, 'said meanwhile'))
    await page.goto(`${shop.origin}/lamps`)
    await page.getByText('said meanwhile').waitFor()
    await write(page, 'after')
    await untilSent(page, 'after')
    await expectEachOnce(shop, visit, ['before', 'said meanwhile', 'after'])
    expect((await visit.session()).sessionId).toBe(session.sessionId)
    expect(visit.complaints).toEqual([])
    await context.close()
  },

  async wakesAfterThreeHours() {
    const { visit, session } = await begin('/account')
    const { page, context } = visit
    await asleep(visit, night, () => shop.agentSays(session.conversationId, 'said meanwhile'))
    await page.getByText('This chat has timed out.').waitFor()
    expect(await stateOf(session.sessionId)).toBe('expired')
    await page.getByRole('button', { name: 'Start a new chat' }).click()
    await expect.poll(async () => (await visit.session()).sessionId, soon).not.toBe(session.sessionId)
    await write(page, 'anew')
    await untilSent(page, 'anew')
    await expectEachOnce(shop, visit, ['anew'])
    const stored = await shop.messagesOf(session.conversationId)
    expect(stored.map(({ body }) => body)).toEqual(['before', 'said meanwhile'])
    expect(visit.complaints).toEqual([])
    await context.close()
  },
}

it('a visitor continues in the same session after 20 minutes of sleep, and can begin a new session after three hours', async () => {
  await Promise.all(Object.values(scenarios).map((run) => run()))
})
