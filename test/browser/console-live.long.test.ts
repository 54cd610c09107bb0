import { createHash, randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { signAssertion } from '../support/assertion.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { act, eventOf, useLiveConsole } from './live-console.ts'

const picturePath = join(import.meta.dirname, '../../docs/images/demo-shop.png')
const live = useLiveConsole(testDatabase())
const { open, button, dialog, command, newVisitor, openConversation, keepSecret } = live

describe('an operator and a visitor on the real stack', () => {
  it('see that a conversation is assigned and closed, and that the visitor’s next message reopens it', async () => {
    const { page } = live
    const { visitor, stream } = await openConversation('Is the showroom open?')
    await button('Assign to me').click()
    expect((await eventOf(stream, 'agent.assigned')).data).toMatchObject({ agent: { displayName: 'Ada' } })
    await page.locator('.happened', { hasText: 'Assigned to you' }).waitFor()
    await button('Close').click()
    await page
      .locator('.thread-title')
      .getByText(/· Closed/)
      .waitFor()
    await eventOf(stream, 'conversation.closed')
    const row = page.locator('.row', { hasText: 'Is the showroom open?' })
    await row.waitFor({ state: 'detached' })
    await visitor.send('And on Sunday?')
    await eventOf(stream, 'conversation.reopened')
    await page.locator('.row', { hasText: 'And on Sunday?' }).waitFor()
    await page
      .locator('.thread-title')
      .getByText(/· Closed/)
      .waitFor({ state: 'detached' })
    stream.close()
  })

  it('exchange a screenshot: the operator requests it, the visitor allows and uploads it, and the console shows it unchanged', async () => {
    const { page } = live
    const { visitor, stream } = await openConversation('I see an error')
    const picture = await readFile(picturePath)
    await button('Take a screenshot').click()
    await page.getByLabel('Purpose').fill('To see the error')
    await button('Send request').click()
    const { requestId, purpose } = (await eventOf(stream, 'screenshot.requested')).data
    expect(purpose).toBe('To see the error')
    await act(visitor, `/commands/screenshots/${requestId}/acknowledgements`, { consent: 'granted' })
    await command('Allowed, waiting for the image').waitFor()
    const uploaded = await visitor.call('POST', `/commands/screenshots/${requestId}/upload`, {
      body: picture,
      headers: { 'Content-Type': 'image/png', 'Idempotency-Key': randomUUID() },
    })
    expect(uploaded.status).toBe(201)
    await button(/^View image/).click()
    await page.getByRole('img', { name: /^Screenshot of the visitor/ }).waitFor()
    await until('the picture', () => page.evaluate("document.querySelector('img.screenshot').naturalWidth > 0"))
    const shown = await page.evaluate<{ type: string; bytes: number[] }>(
      'picture.arrayBuffer().then((buffer) => ({ type: picture.type, bytes: [...new Uint8Array(buffer)] }))',
    )
    expect(shown.type).toBe('image/png')
    expect(sha256(Buffer.from(shown.bytes))).toBe(sha256(picture))
    stream.close()
  })

  it('exchange a navigation request: a URL of another site is rejected, and the console shows the outcome of an allowed one', async () => {
    const { page, demo } = live
    const { visitor, stream } = await openConversation('Where are the returns?')
    await button('Suggest a page').click()
    await page.getByLabel('URL').fill('https://elsewhere.example/')
    await button('Send request').click()
    await page.getByText(/must be on the visitor’s site/).waitFor()
    await page.getByLabel('URL').fill(`${demo.origin}/returns`)
    await page.getByLabel('Label', { exact: true }).fill('Returns')
    await button('Send request').click()
    await command('Waiting for the visitor').waitFor()
    const { commandId, url, label } = (await eventOf(stream, 'navigation.requested')).data
    expect({ url, label }).toEqual({ url: `${demo.origin}/returns`, label: 'Returns' })
    const path = `/commands/navigation/${commandId}/acknowledgements`
    await act(visitor, path, { outcome: 'accepted' })
    await command('Accepted, opening the page').waitFor()
    await act(visitor, path, { outcome: 'completed' })
    await command('Completed').waitFor()
    stream.close()
    // The browser logs the expected 400 of the rejected request.
    live.ignoreErrors(/Failed to load resource.*400/)
  })
})

describe('an installation on the real stack', () => {
  it('allows a new origin within 3 s after the operator has saved the origin', async () => {
    const { page, demo } = live
    const origin = 'https://new.shop.example'
    await expect(newVisitor({ origin })).rejects.toThrow(/403 OriginNotAllowed/)
    await open(`installations/${demo.siteKey}`)
    await page.getByRole('textbox', { name: 'Addresses' }).fill(origin)
    await page.keyboard.press('Enter')
    await button(`Remove ${origin}`).waitFor()
    const saved = Date.now()
    const visitor = await until('a session there', () => newVisitor({ origin }).catch(() => undefined))
    // A gateway caches the rejection of an origin for one second. The rest is a margin.
    expect(Date.now() - saved).toBeLessThan(3_000)
    expect((await visitor.send('From the new page')).status).toBe(202)
  })

  it('shows the new identity secret once after a rotation; the new and the previous secret are valid', async () => {
    const { page, demo } = live
    await open(`installations/${demo.siteKey}/keys`)
    await button('Rotate').click()
    await button('Create new secret').click()
    const label = (await dialog().locator('label', { hasText: 'Secret (key' }).textContent())!
    const kid = /key (\S+)\)/.exec(label)![1]!
    const secret = await keepSecret(/^Secret/)
    await page.getByText(kid).waitFor()
    expect(await page.content()).not.toContain(secret)
    await page.reload()
    await page.getByText(kid).waitFor()
    expect(await page.content()).not.toContain(secret)
    for (const key of [{ kid, secret }, demo.identity]) {
      const visitor = await newVisitor()
      const assertion = signAssertion({ siteKey: demo.siteKey, ...key }, { claims: { sub: `customer-${kid}` } })
      expect((await act(visitor, '/sessions/identify', { assertion })).body).toMatchObject({
        identity: { state: 'verified' },
      })
    }
  })
})

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
