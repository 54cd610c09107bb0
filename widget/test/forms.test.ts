import { describe, expect, it } from 'vitest'
import type { KeyValueStorage } from '../../browser/storage.ts'
import { createClientHarness, until } from './client-harness.ts'
import { serverPerTest } from './server-per-test.ts'

const forms = {
  preChat: { fields: [{ name: 'email', label: 'Email', type: 'email', required: true, maxLength: 254 }] },
  offline: { fields: [{ name: 'phone', label: 'Phone', type: 'tel', required: false, maxLength: 32 }] },
}
const advertised = { capabilities: { preChatForm: true, offlineForm: true }, forms }
const fields = { email: 'ada@example.com' }

const { clock, server, restart } = serverPerTest(advertised)

async function started(config?: Record<string, unknown>) {
  if (config) await restart(config)
  return resumed()
}

async function resumed(storage?: KeyValueStorage) {
  const harness = createClientHarness(server, 'pk_friendly', { clock, storage })
  await harness.started()
  return harness
}

const posts = () => server.seen('POST /forms/pre-chat')
const keys = () => new Set(posts().map(({ headers }) => headers['idempotency-key']))

describe('formDue', () => {
  it('formDue returns the pre-chat form before the first message, and undefined afterwards, even after a reload', async () => {
    const { client, states, storage } = await started()
    expect(client.formDue()).toBe('preChat')
    client.sendMessage('Hello')
    expect(client.formDue()).toBeUndefined()
    await until(() => states()[0] === 'queued')
    client.stop()
    const after = await resumed(storage)
    expect(after.client.formDue()).toBeUndefined()
  })

  it('formDue returns the offline form while no operator is available', async () => {
    const { client } = await started({ ...advertised, availability: { online: false } })
    expect(client.formDue()).toBe('offline')
  })

  it.each([
    ['the capability is off', { capabilities: { preChatForm: false }, forms }],
    ['there are no fields', { capabilities: { preChatForm: true }, forms: { preChat: { fields: [] } } }],
    ['there is no form', { capabilities: { preChatForm: true } }],
  ])('formDue returns undefined if %s, and no form can be submitted', async (_name, config) => {
    const { client } = await started(config)
    expect(client.formDue()).toBeUndefined()
    await expect(client.submitForm('preChat', fields)).rejects.toMatchObject({ code: 'RouteNotAdvertised' })
    expect(posts()).toEqual([])
  })

  it('formDue returns undefined if only agents have written, even before their messages are loaded', async () => {
    const first = createClientHarness(server, 'pk_friendly', { clock })
    await first.started()
    for (let count = 1; count <= 60; count += 1) server.conversation('pk_friendly').agentSays(`message ${count}`)
    server.continueConversations()
    const second = createClientHarness(server, 'pk_friendly', { clock })
    const due: unknown[] = []
    for (const name of ['config.loaded', 'session.ready', 'messages.changed', 'form.changed'] as const)
      second.client.on(name, () => due.push(second.client.formDue()))
    await second.started()
    await until(() => second.bodies().length === 50)
    expect(due.length).toBeGreaterThan(2)
    expect(due.filter(Boolean)).toEqual([])
  })

  it('formDue returns the pre-chat form in a continued conversation without messages', async () => {
    const first = createClientHarness(server, 'pk_friendly', { clock })
    await first.started()
    server.continueConversations()
    const second = createClientHarness(server, 'pk_friendly', { clock })
    await second.started()
    await until(() => second.client.formDue() === 'preChat')
  })

  it('formDue returns undefined after an agent has written the first message', async () => {
    const { client, bodies } = await started()
    expect(client.formDue()).toBe('preChat')
    server.conversation('pk_friendly').agentSays('Can I help you?')
    await until(() => bodies().length === 1)
    expect(client.formDue()).toBeUndefined()
  })

  it('formDue returns undefined after a submission and a reload, and returns the form again in a new session', async () => {
    const { client, storage } = await started()
    expect(await client.submitForm('preChat', fields)).toEqual({ status: 'submitted' })
    expect(client.formDue()).toBeUndefined()
    client.stop()
    const after = await resumed(storage)
    expect(after.client.formDue()).toBeUndefined()
    expect(after.client.activity().map(({ type }) => type)).toEqual(['form.submitted'])
    server.endSessions('pk_friendly', 'session.expired', { status: 401, code: 'SessionExpired' })
    await until(() => after.client.ended() !== undefined)
    await after.client.startNew()
    expect(after.client.formDue()).toBe('preChat')
  })
})

describe('form submissions', () => {
  it('a form submission creates only one lead even if the response is lost, and is reported as submitted only after the service accepted it', async () => {
    const { client, events } = await started()
    server.features.failNext('/forms/', 'lost')
    const submitting = client.submitForm('preChat', fields)
    await until(() => posts().length === 1)
    expect(client.formState('preChat').status).toBe('sending')
    await until(
      () => posts().length === 2,
      () => clock.advance(1_000),
    )
    expect(await submitting).toEqual({ status: 'submitted' })
    expect(server.features.leads).toEqual([fields])
    expect(keys().size).toBe(1)
    const states = events.filter(({ name }) => name === 'form.changed').map(({ payload }) => payload)
    expect(states).toMatchObject([{ state: { status: 'sending' } }, { state: { status: 'submitted' } }])
  })

  it('a form submission continues after a reload with the same idempotency key; its fields are deleted from storage once it is accepted', async () => {
    const { client, storage } = await started()
    server.features.failNext('/forms/', { status: 503, code: 'ServiceUnavailable' })
    void client.submitForm('preChat', fields)
    await until(() => posts().length === 1)
    expect(storage.getItem('service.widget.1.pk_friendly.features')).toContain('ada@example.com')
    client.stop()
    const after = await resumed(storage)
    await until(() => after.client.formState('preChat').status === 'submitted')
    expect(server.features.leads).toEqual([fields])
    expect(keys().size).toBe(1)
    expect(storage.getItem('service.widget.1.pk_friendly.features')).not.toContain('ada@example.com')
  })

  it('a form submission that the service rejects reports the rejected fields and is not retried; the next submission has a new idempotency key', async () => {
    const { client, storage } = await started()
    server.features.failNext('/forms/', {
      status: 400,
      code: 'ValidationFailed',
      retryable: false,
      issues: [{ path: '/fields/email', rule: 'format' }],
    })
    const state = await client.submitForm('preChat', fields)
    expect(state).toMatchObject({ status: 'failed', issues: { email: 'format' }, error: { recoverable: false } })
    expect(storage.getItem('service.widget.1.pk_friendly.features')).not.toContain('ada@example.com')
    expect(client.formDue()).toBe('preChat')
    expect(await client.submitForm('preChat', { email: 'ada@example.org' })).toEqual({ status: 'submitted' })
    expect(keys().size).toBe(2)
  })

  it('a form submission is reported as failed after its last attempt; the next submission has the same idempotency key', async () => {
    const { client } = await started()
    server.features.failNext(
      '/forms/',
      ...Array.from({ length: 6 }, () => ({ status: 503, code: 'ServiceUnavailable' })),
    )
    const submitting = client.submitForm('preChat', fields)
    let state: unknown
    void submitting.then((answer) => {
      state = answer
    })
    await until(
      () => state !== undefined,
      () => clock.advance(5_000),
    )
    expect(state).toMatchObject({ status: 'failed', error: { code: 'ServiceUnavailable', recoverable: true } })
    expect(posts()).toHaveLength(6)
    expect(await client.submitForm('preChat', fields)).toEqual({ status: 'submitted' })
    expect(keys().size).toBe(1)
  })

  it('a form submission is sent once if the application calls submitForm twice, and not again after it was accepted', async () => {
    const { client } = await started()
    await Promise.all([client.submitForm('preChat', fields), client.submitForm('preChat', fields)])
    await client.submitForm('preChat', fields)
    expect(posts()).toHaveLength(1)
  })
})
