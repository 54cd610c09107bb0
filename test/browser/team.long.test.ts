import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { checkLooks, looks } from '../../console/test/view-checks.ts'
import { damaged } from '../support/nasty-values.ts'
import { pageSizes } from '../support/page-checks.ts'
import { button, enter, invite, openTeam, useLiveTeam } from './live-team.ts'

const live = useLiveTeam()
const { newPerson, ownerLink, url } = live

/** Sends a request as the console of a page does. */
const post = (page: Page, path: string, body: object, origin = url()) =>
  page.request.post(`${origin}/console/session/${path}`, {
    headers: { origin, 'sec-fetch-site': 'same-origin', 'x-service-console': '1' },
    ...(Object.keys(body).length > 0 && { data: body }),
  })

const newOptions = async (page: Page, origin = url()): Promise<string> =>
  (await (await post(page, 'passkey/begin', {}, origin)).json()).options

/** Answers a challenge in the page, without sending the answer. */
const answerIn = (page: Page, options: string): Promise<string> =>
  page.evaluate(`(async () => {
    const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(${options})
    return JSON.stringify((await navigator.credentials.get({ publicKey })).toJSON())
  })()`)

describe('a session of an account', { timeout: 120_000 }, () => {
  it('that is ended on one gateway is over on another gateway and core', async () => {
    const one = await newPerson()
    await enter(one, await ownerLink(), 'Olga')
    const other = await newPerson()
    await enter(other, await ownerLink(url(1)), 'Olga')
    await openTeam(one)
    const sessions = one.getByRole('region', { name: 'Sessions' })
    await sessions.getByText('this browser').waitFor()
    await sessions
      .getByRole('button', { name: /^End the session of/ })
      .first()
      .click()
    await other.getByText(/Your session has ended/).waitFor()
  })
})

describe('a passkey', { timeout: 120_000 }, () => {
  it('refuses a replayed answer, another browser, another origin and a changed answer', async () => {
    const page = await newPerson()
    await enter(page, await ownerLink(), 'Olga')
    await openTeam(page)
    await button(page, 'Add a passkey').click()
    await page.getByRole('region', { name: 'Your passkeys' }).getByText(/Added/).first().waitFor()
    await button(page, 'Sign out').click()
    const sent = page.waitForRequest((request) => request.url().endsWith('/console/session/passkey'))
    await button(page, 'Use a passkey').click()
    const { response } = (await sent).postDataJSON()
    await page.getByRole('navigation', { name: 'Console' }).waitFor()
    expect((await post(page, 'passkey', { response })).status()).toBe(401)

    // Another browser has the answer, but not the cookie of the one that began.
    const thief = await newPerson()
    const stolen = await answerIn(page, await newOptions(page))
    expect((await post(thief, 'passkey', { response: stolen })).status()).toBe(401)

    // Both gateways have one host, so the browser offers the passkey to pages of both ports. It signs in
    // only at the origin at which it was made, also if the request names that origin.
    const options = await newOptions(page)
    await page.goto(`${url(1)}/console/team`)
    expect((await post(page, 'passkey', { response: await answerIn(page, options) })).status()).toBe(401)
    const foreign = await answerIn(page, await newOptions(page, url(1)))
    expect((await post(page, 'passkey', { response: foreign }, url(1))).status()).toBe(401)

    await page.goto(`${url()}/console/team`)
    const valid = JSON.parse(await answerIn(page, await newOptions(page)))
    const signature = damaged(valid.response.signature)
    const changed = { ...valid, response: { ...valid.response, signature } }
    expect((await post(page, 'passkey', { response: JSON.stringify(changed) })).status()).toBe(401)
    // A refused answer uses up its challenge.
    expect((await post(page, 'passkey', { response: JSON.stringify(valid) })).status()).toBe(401)
    for (const nothing of ['', '{}', '[]', 'null', '{"response":{"clientDataJSON":7}}', '{"id":{"$ne":1}}'])
      expect((await post(page, 'passkey', { response: nothing })).status()).toBe(401)
    expect((await post(page, 'passkey', { response: await answerIn(page, await newOptions(page)) })).status()).toBe(200)
  })
})

describe('the page Team', { timeout: 240_000 }, () => {
  it('and the sign-in page have no findings in any look', async () => {
    const page = await newPerson()
    await page.goto(`${url()}/console/`)
    await page.getByText('Ask your administrator for a link.').waitFor()
    // The sign-in page is a document that scrolls, unlike the pages behind it.
    const found = (await checkLooks(page, 'sign-in', looks)).filter((each) => !each.endsWith('px into nothing'))
    await page.setViewportSize(pageSizes.desktop)
    await enter(page, await ownerLink(), 'Olga')
    await page.goto(`${url()}/console/team`)
    await invite(page, 'Viewer')
    await page.getByRole('region', { name: 'Sessions' }).getByText('this browser').waitFor()
    expect([...found, ...(await checkLooks(page, 'team', looks))]).toEqual([])
  })
})
