import { describe, expect, it } from 'vitest'
import { createClientHarness, until } from './client-harness.ts'
import { serverPerTest } from './server-per-test.ts'

const { clock, server } = serverPerTest()

async function started() {
  const harness = createClientHarness(server, 'pk_friendly', { clock })
  await harness.started()
  const talk = server.conversation('pk_friendly')
  return {
    ...harness,
    errors: () => harness.events.filter(({ name }) => name === 'error').map(({ payload }) => payload),
    /** Emits an event, then a message, and waits for the message. */
    async receive(type: string, category?: string) {
      talk.emit(type, {}, undefined, undefined, category)
      const count = harness.client.messages().length
      talk.agentSays('Next')
      await until(() => harness.client.messages().length > count)
    },
  }
}

describe('contract 7, rule 9: an event of an unknown type', () => {
  it.each([['informational'], [undefined], ['of-a-later-version']])(
    'is ignored in the category %s',
    async (category) => {
      const harness = await started()
      await harness.receive('conversation.rated', category)
      expect(harness.errors()).toEqual([])
    },
  )

  it('is reported in the category command, and the chat goes on', async () => {
    const harness = await started()
    await harness.receive('camera.requested', 'command')
    expect(harness.errors()).toEqual([{ code: 'unsupported_command', recoverable: true }])
    harness.client.sendMessage('Hello')
    await until(() => harness.states().at(-1) === 'queued')
  })

  it('stops automatic sends in the category security, and each act of the visitor gets one attempt', async () => {
    const harness = await started()
    const busy = { status: 503, code: 'ServiceUnavailable', retryable: true }
    const sends = () => server.seen('POST /messages').length
    server.set('pk_friendly', { refuseSends: [busy, busy] })
    const { clientOperationId } = harness.client.sendMessage('Hello')
    await until(() => harness.states()[0] === 'retrying')

    await harness.receive('session.quarantined', 'security')
    expect(harness.errors()).toContainEqual({ code: 'unsupported_security_event', recoverable: false })
    expect(harness.client.ended()).toBeUndefined()
    await until(() => harness.states().includes('failed'))
    clock.advance(300_000)
    expect(sends()).toBe(1)

    harness.client.retryMessage(clientOperationId!)
    await until(() => sends() === 2 && harness.states().includes('failed'))
    clock.advance(300_000)
    expect(sends()).toBe(2)

    harness.client.retryMessage(clientOperationId!)
    await until(() => harness.client.messages().some(({ body, messageId }) => body === 'Hello' && messageId))
    expect(sends()).toBe(3)
  })
})
