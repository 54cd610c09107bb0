import { beforeEach, describe, expect, it } from 'vitest'
import { createClientHarness, until } from './client-harness.ts'
import { serverPerTest } from './server-per-test.ts'

const page = { url: 'http://shop.test/', title: 'Shop' }
const consent = { required: true, policyUrl: 'https://shop.test/privacy', policyVersion: '2' }
const config: { consent: object } = { consent }
const { clock, server, restart } = serverPerTest(config)
beforeEach(() => {
  config.consent = consent
})

/** Starts a client in a tab that may have stored an earlier decision. */
async function started(stored?: object) {
  const harness = createClientHarness(server, 'pk_friendly', { clock, options: { pageContext: () => page } })
  if (stored) harness.storage.setItem('service.widget.1.pk_friendly.consent', JSON.stringify(stored))
  await harness.started()
  return harness
}

/** Does everything that the package reports to the service. */
async function act({ client, clock }: Awaited<ReturnType<typeof started>>) {
  client.setChatShown(true)
  client.startTyping()
  client.updatePageContext()
  for (let step = 0; step < 8; step += 1) {
    clock.advance(500)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

const reports = ['POST /typing', 'POST /presence', 'POST /context/page']
const pagesSent = () => server.requests.filter(({ body }) => body?.pageContext !== undefined)

describe('contract 7, rule 3: what the package reports', () => {
  it.each([
    ['if no consent is required', { required: false }, undefined],
    ['after the consent was granted', consent, { policyVersion: '2', decision: 'granted', isVerified: false }],
  ])('is everything %s', async (_when, policy, stored) => {
    config.consent = policy
    const harness = await started(stored)
    await act(harness)
    for (const route of reports) await until(() => server.seen(route).length > 0)
    expect(pagesSent().map(({ path }) => path)).toEqual(['/sessions'])
  })

  it.each([
    ['before the visitor has decided', undefined],
    ['after the consent was denied', { policyVersion: '2', decision: 'denied', isVerified: false }],
    ['after an earlier version was granted', { policyVersion: '1', decision: 'granted', isVerified: false }],
    [
      'after a verified visitor of an earlier session has granted it',
      { policyVersion: '2', decision: 'granted', isVerified: true, sessionId: 'ses_before' },
    ],
    ['if the stored decision is damaged', { decision: 'granted' }],
  ])('is nothing %s', async (_when, stored) => {
    const harness = await started(stored)
    harness.client.sendMessage('Hello')
    await act(harness)
    for (const route of [...reports, 'POST /messages']) expect(server.seen(route), route).toEqual([])
    expect(pagesSent()).toEqual([])
  })

  it('begins when the visitor grants the consent', async () => {
    const harness = await started()
    await act(harness)
    await (await harness.client.consent()).decide('granted')
    await act(harness)
    for (const route of reports)
      await until(
        () => server.seen(route).length > 0,
        () => clock.advance(500),
      )
  })

  it('is nothing while the configuration is unknown', async () => {
    await restart({ capabilities: undefined })
    const harness = createClientHarness(server, 'pk_friendly', { clock, options: { pageContext: () => page } })
    void harness.client.start()
    await until(
      () => harness.client.connection() === 'online',
      () => clock.advance(1_000),
    )
    await act(harness)
    for (const route of reports) expect(server.seen(route), route).toEqual([])
    expect(pagesSent()).toEqual([])
  })
})

it('contract 7, rule 8: closing the panel is reported once each time, and the session continues', async () => {
  config.consent = { required: false }
  const { client } = await started()
  client.setChatShown(false)
  for (const closings of [1, 2]) {
    client.setChatShown(true)
    client.setChatShown(false)
    client.setChatShown(false)
    await until(() => server.seen('POST /sessions/close').length === closings)
  }
  const sent = server.seen('POST /sessions/close')
  expect(sent.map(({ body }) => body)).toEqual([{ scope: 'panel' }, { scope: 'panel' }])
  expect(new Set(sent.map(({ headers }) => headers['idempotency-key'])).size).toBe(2)
  client.sendMessage('Still here')
  await until(() => client.messages()[0]?.deliveryStatus === 'queued')
})

it('messages that failed because consent was denied are sent in their order as soon as it is granted', async () => {
  const { client } = await started()
  const consentStep = await client.consent()
  const statuses = () => client.messages().map(({ body, deliveryStatus }) => `${body} ${deliveryStatus}`)
  client.sendMessage('One')
  await until(() => consentStep.state()?.isHolding === true)
  await consentStep.decide('denied')
  await until(() => statuses()[0] === 'One failed')
  clock.advance(1)
  client.sendMessage('Two')
  await until(() => consentStep.state()?.isHolding === true)
  await consentStep.decide('granted')
  await until(() => statuses().every((status) => /sent|queued/.test(status)))
  expect(server.conversation('pk_friendly').messages.map(({ body }) => body)).toEqual(['One', 'Two'])
})

it('a form that was not sent because consent was denied is sent once as soon as it is granted', async () => {
  const email = { name: 'email', label: 'Email', type: 'email', required: true, maxLength: 254 }
  await restart({ ...config, capabilities: { preChatForm: true }, forms: { preChat: { fields: [email] } } })
  const { client } = await started()
  const consentStep = await client.consent()
  const submitted = client.submitForm('preChat', { email: 'ada@example.com' })
  await until(() => consentStep.state()?.isHolding === true)
  await consentStep.decide('denied')
  expect(await submitted).toMatchObject({ status: 'failed', error: { code: 'ConsentRequired' } })
  expect(server.features.leads).toEqual([])
  consentStep.reopen()
  await consentStep.decide('granted')
  await until(() => client.formState('preChat').status === 'submitted')
  expect(server.features.leads).toEqual([{ email: 'ada@example.com' }])
})
