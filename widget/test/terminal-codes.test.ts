import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { createMemoryStorage } from '../src/storage.ts'
import type { SessionEnd } from '../src/types.ts'
import { createClientHarness, until } from './client-harness.ts'
import { createManualClock } from './manual-clock.ts'
import { type ScenarioServer, startScenarioServer } from './scenario-server.ts'

let server: ScenarioServer
let clock: ReturnType<typeof createManualClock>
beforeEach(async () => {
  await server?.close()
  clock = createManualClock()
  server = await startScenarioServer({ now: clock.now })
})
afterAll(() => server.close())

const conditions = [
  ['session.expired', 'SessionExpired', 401],
  ['session.expired', 'GrantInvalid', 401],
  ['session.closed', 'SessionClosed', 401],
  ['session.revoked', 'SessionRevoked', 403],
  ['visitor.banned', 'VisitorBanned', 403],
  ['connection.disabled', 'ConnectionDisabled', 403],
] as const

/** Every place where the package names the condition. */
function codesOf({ client, events }: ReturnType<typeof createClientHarness>, event: SessionEnd) {
  const told = events.filter(({ name }) => name === event).map(({ payload }) => (payload as { code: string }).code)
  return [...told, client.ended()?.code, ...client.messages().flatMap(({ error }) => error?.code ?? [])]
}

describe('a terminal condition has the name of its event as its only code', () => {
  it.each(conditions)('%s, from the stream', async (event) => {
    const harness = createClientHarness(server, 'pk_friendly', { clock })
    await harness.started()
    harness.network.online = false
    harness.client.sendMessage('Waits for the network')
    server.endSessions('pk_friendly', event, { status: 401, code: 'SessionExpired' })
    await until(() => harness.client.connection() === 'ended')
    expect(codesOf(harness, event)).toEqual([event, event, event])
  })

  it.each(conditions)('%s, from the answer %s', async (event, code, status) => {
    const harness = createClientHarness(server, 'pk_friendly', { clock })
    await harness.started()
    server.conversation('pk_friendly').streams.clear()
    server.endSessions('pk_friendly', event, { status, code })
    harness.client.sendMessage('Hello')
    await until(() => harness.client.connection() === 'ended')
    expect(codesOf(harness, event)).toEqual([event, event, event])
  })

  it('session.expired, from the clock', async () => {
    const harness = createClientHarness(server, 'pk_renew_never', { clock })
    await harness.started()
    clock.advance(616_000)
    for (let failures = 1; !harness.client.ended(); failures += 1) {
      await until(() => harness.count('error') === failures || harness.client.ended() !== undefined)
      clock.advance(30_000)
    }
    expect(codesOf(harness, 'session.expired')).toEqual(['session.expired', 'session.expired'])
  })

  it('replay.reset.required, from the stream', async () => {
    const harness = createClientHarness(server, 'pk_reset_reauthenticate', { clock })
    await harness.client.start()
    await until(() => harness.client.connection() === 'ended')
    expect(codesOf(harness, 'replay.reset.required')).toEqual(['replay.reset.required', 'replay.reset.required'])
  })

  it('visitor.banned, from a record that an earlier version stored', async () => {
    const storage = createMemoryStorage()
    const ended = { event: 'visitor.banned', code: 'VisitorBanned' }
    storage.setItem('service.widget.1.pk_friendly', JSON.stringify({ clientInstanceId: 'tab', ended }))
    const harness = createClientHarness(server, 'pk_friendly', { clock, storage })
    await harness.client.start()
    expect(codesOf(harness, 'visitor.banned')).toEqual(['visitor.banned', 'visitor.banned'])
    expect(server.seen('POST /sessions')).toEqual([])
  })

  it('session.expired, on a message that an ended session left unsent', async () => {
    const storage = createMemoryStorage()
    const before = createClientHarness(server, 'pk_friendly', { clock, storage })
    await before.started()
    before.network.online = false
    before.client.sendMessage('Left behind')
    before.client.stop()
    clock.advance(1_000_000)
    const after = createClientHarness(server, 'pk_friendly', { clock, storage })
    await after.started()
    expect(after.client.messages().map(({ error }) => error?.code)).toEqual(['session.expired'])
    after.client.stop()
  })
})
