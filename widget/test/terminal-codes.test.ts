import { describe, expect, it } from 'vitest'
import { storageFor } from '../../browser/storage.ts'
import type { SessionEnd } from '../src/vocabulary/types.ts'
import { createClientHarness, until } from './client-harness.ts'
import { serverPerTest } from './server-per-test.ts'

const { clock, server } = serverPerTest()

const conditions = [
  ['session.expired', 'SessionExpired', 401],
  ['session.expired', 'GrantInvalid', 401],
  ['session.closed', 'SessionClosed', 401],
  ['session.revoked', 'SessionRevoked', 403],
  ['visitor.banned', 'VisitorBanned', 403],
  ['connection.disabled', 'ConnectionDisabled', 403],
] as const

/** Returns all codes with which the package reports the end of the session. */
function codesOf({ client, events }: ReturnType<typeof createClientHarness>, event: SessionEnd) {
  const fromEvents = events
    .filter(({ name }) => name === event)
    .map(({ payload }) => (payload as { code: string }).code)
  return [...fromEvents, client.ended()?.code, ...client.messages().flatMap(({ error }) => error?.code ?? [])]
}

describe('the code that the client reports after the end of a session', () => {
  it.each(conditions)('the reported code is the name of the event if the stream delivers %s', async (event) => {
    const harness = createClientHarness(server, 'pk_friendly', { clock })
    await harness.started()
    harness.network.online = false
    harness.client.sendMessage('Waits for the network')
    server.endSessions('pk_friendly', event, { status: 401, code: 'SessionExpired' })
    await until(() => harness.client.connection() === 'ended')
    expect(codesOf(harness, event)).toEqual([event, event, event])
  })

  it.each(conditions)('the reported code is %s if a response has the code %s', async (event, code, status) => {
    const harness = createClientHarness(server, 'pk_friendly', { clock })
    await harness.started()
    server.conversation('pk_friendly').streams.clear()
    server.endSessions('pk_friendly', event, { status, code })
    harness.client.sendMessage('Hello')
    await until(() => harness.client.connection() === 'ended')
    expect(codesOf(harness, event)).toEqual([event, event, event])
  })

  it('the reported code is session.expired if the session expires by the clock of the client', async () => {
    const harness = createClientHarness(server, 'pk_friendly', { clock })
    await harness.started()
    clock.sleep(8_100_000)
    harness.signal('visible')
    expect(codesOf(harness, 'session.expired')).toEqual(['session.expired', 'session.expired'])
  })

  it('the reported code is visitor.banned if an earlier version of the client stored the code VisitorBanned', async () => {
    const storage = storageFor('memory')
    const ended = { event: 'visitor.banned', code: 'VisitorBanned' }
    storage.setItem('service.widget.1.pk_friendly', JSON.stringify({ clientInstanceId: 'tab', ended }))
    const harness = createClientHarness(server, 'pk_friendly', { clock, storage })
    await harness.client.start()
    expect(codesOf(harness, 'visitor.banned')).toEqual(['visitor.banned', 'visitor.banned'])
    expect(server.seen('POST /sessions')).toEqual([])
  })
})
