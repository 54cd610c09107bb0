import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { act, eventOf, useLiveConsole } from './live-console.ts'

const live = useLiveConsole(testDatabase())
const { open, button, dialog, answerField, newVisitor, openConversation, keepSecret } = live

describe('an operator and a visitor on the real stack', () => {
  it('exchange messages and typing live, and the visitor’s message becomes read', async () => {
    const { page } = live
    const { visitor, stream } = await openConversation('Do you ship to Graz?')
    await eventOf(stream, 'message.accepted')
    await until('the read state', () =>
      stream.events.some(({ type, data }) => type === 'message.state.changed' && data.state === 'read'),
    )
    await visitor.call('POST', '/typing', { body: { state: 'started' } })
    await page.locator('.typing-line').waitFor()
    await visitor.call('POST', '/typing', { body: { state: 'stopped' } })
    await page.locator('.typing-line').waitFor({ state: 'detached' })

    await answerField().pressSequentially('We do. ')
    expect((await eventOf(stream, 'typing.started')).data.author).toMatchObject({ kind: 'agent', displayName: 'Ada' })
    await page.keyboard.type('Two days.')
    await page.keyboard.press('Enter')
    const { message } = (await eventOf(stream, 'message.received')).data
    expect(message).toMatchObject({ body: 'We do. Two days.', author: { kind: 'agent', displayName: 'Ada' } })
    await page.locator('.message.agent:not(.outgoing)', { hasText: 'Two days.' }).waitFor()
    expect((await visitor.history()).map(({ body }) => body)).toEqual(['Do you ship to Graz?', 'We do. Two days.'])

    await visitor.send('شكرا جزيلا!')
    await page.locator('.message.visitor:last-child .bubble', { hasText: 'شكرا' }).waitFor()
    expect(
      await page.evaluate("getComputedStyle(document.querySelector('.message:last-child .bubble')).direction"),
    ).toBe('rtl')
    stream.close()
  })

  it('see the effects of a ban: the visitor’s stream ends, and the console shows the ban and later its end, even after a reload', async () => {
    const { page } = live
    const clientInstanceId = randomUUID()
    const { visitor, stream } = await openConversation('Buy followers at spam.example', { clientInstanceId })
    await button('Ban visitor').click()
    await dialog().getByLabel('Reason').fill('Spam')
    await dialog().getByRole('button', { name: 'Ban visitor' }).click()
    await stream.ended
    expect(stream.events.at(-1)?.type).toBe('visitor.banned')
    expect(JSON.stringify(stream.events)).not.toContain('Spam')
    expect((await visitor.send('Hello?')).body).toMatchObject({ code: 'VisitorBanned', terminal: true })
    await expect(newVisitor({ clientInstanceId })).rejects.toThrow(/403 VisitorBanned/)

    await page.reload()
    await page
      .locator('.thread-title')
      .getByText(/· Banned/)
      .waitFor()
    await button('Lift ban').click()
    await dialog().getByRole('button', { name: 'Lift ban' }).click()
    await page
      .locator('.details')
      .getByText(/Ban lifted/)
      .waitFor()
    await page.reload()
    await page
      .locator('.details')
      .getByText(/Ban lifted/)
      .waitFor()
    await newVisitor({ clientInstanceId })
  })
})

describe('a lead on the real stack', () => {
  it('is captured by a form; its delivery fails, and a double click on the retry button retries the delivery once', async () => {
    const { page, demo, receiver } = live
    // Nothing listens on this port, so that the delivery fails.
    const closedUrl = `http://127.0.0.1:${await freePort()}/leads`
    receiver.on('/leads', (_request, response) => response.writeHead(400).end())
    const secrets = [await subscribe(closedUrl), await subscribe(`${receiver.http}/leads`)]
    expect(new Set(secrets).size).toBe(2)

    await open(`installations/${demo.siteKey}/forms`)
    for (const name of ['Offline form', 'Pre-chat form']) {
      await page.getByRole('switch', { name }).click()
      await until(`${name} is on`, () => page.getByRole('switch', { name }).isChecked())
    }
    const form = page.getByRole('form', { name: 'Offline form' })
    await form.getByRole('button', { name: /Add field/ }).click()
    await form.getByLabel('Label').fill('Your e-mail')
    await form.getByText('More', { exact: true }).click()
    await form.getByLabel('Name in leads').fill('email')
    await form.getByLabel('Type').selectOption('email')
    await form.getByLabel('Max length').fill('40')
    await button('Save changes').click()
    await page.getByText('Offline form saved.').waitFor({ state: 'attached' })

    const visitor = await newVisitor()
    const config = await visitor.call('GET', `/config/${demo.siteKey}`)
    expect(config.body.capabilities).toMatchObject({ offlineForm: true, preChatForm: true })
    expect(config.body.forms.offline.fields).toMatchObject([{ name: 'email', type: 'email', maxLength: 40 }])
    const email = `ada-${randomUUID().slice(0, 8)}@example.org`
    expect((await act(visitor, '/forms/offline', { fields: { email } })).status).toBe(202)

    await open('leads')
    await page.getByText(email, { exact: true }).click()
    await page.getByText('Network error, connection refused, while connecting').waitFor()
    await page.getByText('Payload rejected, HTTP 400').waitFor()
    expect(receiver.to('/leads')).toHaveLength(1)
    expect(JSON.parse(receiver.to('/leads')[0]!.body.toString()).data).toMatchObject({ email })

    receiver.on('/leads', (_request, response) => response.writeHead(202).end())
    await page.getByRole('link', { name: `${receiver.http}/••••` }).click()
    await page.getByRole('heading', { level: 1, name: 'Delivery' }).waitFor()
    await button('Retry now').dblclick()
    await page.getByText('HTTP 202', { exact: true }).waitFor()
    expect(receiver.to('/leads')).toHaveLength(2)
    expect(await page.locator('.attempt').count()).toBe(2)
    const [first, second] = receiver.to('/leads')
    expect(second!.headers['x-service-webhook-id']).toBe(first!.headers['x-service-webhook-id'])
    expect(second!.body.equals(first!.body)).toBe(true)
    for (const secret of secrets) expect(await page.content()).not.toContain(secret)
  })

  async function subscribe(address: string): Promise<string> {
    const { page } = live
    await open('subscriptions/new')
    await page.getByLabel('Destination URL').fill(address)
    await page.getByRole('combobox', { name: 'Fields to send' }).fill('email')
    await page.keyboard.press('Enter')
    await button('Create destination').click()
    const secret = await keepSecret(/^Secret/)
    await page.getByRole('heading', { level: 1, name: new URL(address).host }).waitFor()
    expect(secret).toMatch(/^whsec_/)
    await page.reload()
    await page.getByText('Signing secrets').waitFor()
    expect(await page.content()).not.toContain(secret)
    return secret
  }
})
