import { afterAll, beforeEach, describe, expect, it } from 'vitest'
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

async function started(config?: Record<string, unknown>) {
  if (config) {
    await server.close()
    server = await startScenarioServer({ now: clock.now, config })
  }
  const harness = createClientHarness(server, 'pk_friendly', { clock })
  await harness.started()
  await harness.withFeatures()
  return harness
}

const told = () => server.seen('POST /typing').map(({ body }) => body?.state)
/** What was told has been answered, so that the next can be. */
const settled = () => new Promise((resolve) => setTimeout(resolve, 30))

describe('the visitor’s typing', () => {
  it('is reported once, repeated before it expires, and stopped', async () => {
    const { client } = await started()
    for (let keys = 0; keys < 20; keys += 1) {
      client.startTyping()
      clock.advance(200)
    }
    await until(() => told().length === 1)
    await settled()
    clock.advance(1_500)
    client.startTyping()
    await until(() => told().length === 2)
    await settled()
    client.stopTyping()
    client.stopTyping()
    await until(() => told().length === 3)
    await settled()
    expect(told()).toEqual(['started', 'started', 'stopped'])
    client.stop()
  })

  it('stops with the message, and is not reported without text', async () => {
    const { client, states } = await started()
    client.stopTyping()
    client.startTyping()
    client.sendMessage('Hello')
    await until(() => told().length === 2 && states()[0] === 'queued')
    expect(told()).toEqual(['started', 'stopped'])
    client.stop()
  })

  it('is not stopped after it has expired on the service', async () => {
    const { client } = await started()
    client.startTyping()
    await until(() => told().length === 1)
    await settled()
    clock.advance(9_000)
    client.stopTyping()
    await settled()
    expect(told()).toEqual(['started'])
    client.stop()
  })

  it('is throttled if the visitor types and deletes in turns', async () => {
    const { client } = await started()
    for (let turns = 0; turns < 50; turns += 1) {
      client.startTyping()
      client.stopTyping()
      await settled().then(() => clock.advance(20))
    }
    expect(told().length).toBeLessThanOrEqual(4)
    client.stop()
  })

  it.each([
    ['a failure that may pass', { status: 503, code: 'ServiceUnavailable' }, 15_000],
    ['a limit', { status: 429, code: 'RateLimited', retryAfter: 40 }, 40_000],
  ])('is silent for a while after %s, without an error and without a retry', async (_name, failure, silentMs) => {
    const { client, count } = await started()
    server.features.failNext('/typing', failure)
    client.startTyping()
    await until(() => told().length === 1)
    await settled()
    clock.advance(silentMs - 1_000)
    client.startTyping()
    client.stopTyping()
    await settled()
    expect(told()).toHaveLength(1)
    clock.advance(2_000)
    client.startTyping()
    await until(() => told().length === 2)
    expect(count('error')).toBe(0)
    client.stop()
  })

  it('is not reported again after the service refused it', async () => {
    const { client } = await started()
    server.features.failNext('/typing', { status: 404, code: 'RouteNotAdvertised', retryable: false })
    client.startTyping()
    await until(() => told().length === 1)
    await settled()
    clock.advance(600_000)
    client.startTyping()
    await settled()
    expect(told()).toHaveLength(1)
    client.stop()
  })

  it('is not reported if the capability is off, without a session, or without a network', async () => {
    const { client } = await started({ capabilities: { typing: false } })
    client.startTyping()
    client.stop()
    client.startTyping()
    const harness = await started()
    harness.network.online = false
    harness.client.startTyping()
    await settled()
    expect(told()).toEqual([])
    harness.client.stop()
  })
})

describe('an agent’s typing', () => {
  const anna = { kind: 'agent', displayName: 'Anna Keller' }

  it('lasts until its stop event', async () => {
    const { client, count } = await started()
    server.conversation('pk_friendly').emit('typing.started', { author: anna })
    await until(() => client.presence().typing.length === 1)
    expect(client.presence().typing).toEqual([anna])
    server.conversation('pk_friendly').emit('typing.stopped', { author: anna })
    await until(() => client.presence().typing.length === 0)
    expect(count('typing.stopped')).toBe(1)
    client.stop()
  })

  it('expires without a stop event; each start event extends it', async () => {
    const { client, count } = await started()
    server.conversation('pk_friendly').emit('typing.started', { author: anna })
    await until(() => count('typing.started') === 1)
    clock.advance(7_000)
    server.conversation('pk_friendly').emit('typing.started', { author: anna })
    await until(() => count('typing.started') === 2)
    clock.advance(7_000)
    expect(client.presence().typing).toHaveLength(1)
    clock.advance(1_001)
    expect(client.presence().typing).toEqual([])
    expect(count('typing.stopped')).toBe(1)
    client.stop()
  })

  it('ends with a message of the same agent only', async () => {
    const { client, bodies } = await started()
    const conversation = server.conversation('pk_friendly')
    conversation.emit('typing.started', { author: anna })
    conversation.agentSays('Me too', 'Ben Roth')
    await until(() => bodies().length === 1)
    expect(client.presence().typing).toEqual([anna])
    conversation.agentSays('Here I am')
    await until(() => client.presence().typing.length === 0)
    client.stop()
  })
})

describe('who is there', () => {
  it('is the assigned agent, and each change is a line in order, also after a reload', async () => {
    const { client, storage, bodies } = await started()
    const conversation = server.conversation('pk_friendly')
    conversation.agentSays('Hello')
    conversation.emit('agent.assigned', { agent: { displayName: 'Anna Keller' } })
    conversation.agentSays('Anna here')
    conversation.emit('conversation.closed')
    conversation.emit('conversation.reopened')
    await until(() => bodies().length === 2 && client.activity().length === 3)
    expect(client.activity().map(({ type, sequence }) => [type, sequence])).toEqual([
      ['agent.assigned', 2],
      ['conversation.closed', 4],
      ['conversation.reopened', 5],
    ])
    const expected = client.activity()
    client.stop()

    const after = createClientHarness(server, 'pk_friendly', { clock, storage })
    await after.started()
    expect(after.client.presence().agent).toEqual({ displayName: 'Anna Keller' })
    expect(after.client.activity()).toEqual(expected)
    conversation.emit('agent.unassigned', { agent: { displayName: 'Anna Keller' } })
    await until(() => after.client.presence().agent === undefined)
    after.client.stop()
  })

  it('is empty in another session', async () => {
    const { client, storage } = await started()
    server.conversation('pk_friendly').emit('agent.assigned', { agent: { displayName: 'Anna Keller' } })
    await until(() => client.presence().agent !== undefined)
    server.endSessions('pk_friendly', 'session.expired', { status: 401, code: 'SessionExpired' })
    await until(() => client.ended() !== undefined)
    expect(storage.getItem('service.widget.1.pk_friendly.features')).toBeNull()
    await client.startNew()
    expect(client.presence().agent).toBeUndefined()
    expect(client.activity()).toEqual([])
    client.stop()
  })
})
