import { describe, expect, it } from 'vitest'
import { createClientHarness, settled, until } from './client-harness.ts'
import { serverPerTest } from './server-per-test.ts'

const { clock, restart, server } = serverPerTest()

async function started(config?: Record<string, unknown>) {
  if (config) await restart(config)
  const harness = createClientHarness(server, 'pk_friendly', { clock })
  await harness.started()
  return harness
}

const reports = () => server.seen('POST /typing').map(({ body }) => body?.state)

describe('the visitor’s typing', () => {
  it('the visitor’s typing is reported when it starts, again before the report expires, and when it stops', async () => {
    const { client } = await started()
    for (let keys = 0; keys < 20; keys += 1) {
      client.startTyping()
      clock.advance(200)
    }
    await until(() => reports().length === 1)
    await settled()
    clock.advance(1_500)
    client.startTyping()
    await until(() => reports().length === 2)
    await settled()
    client.stopTyping()
    client.stopTyping()
    await until(() => reports().length === 3)
    await settled()
    expect(reports()).toEqual(['started', 'started', 'stopped'])
  })

  it('the end of the visitor’s typing is reported if it comes before the code for typing is loaded', async () => {
    const harness = createClientHarness(server, 'pk_friendly', { clock })
    await harness.started()
    harness.client.startTyping()
    harness.client.stopTyping()
    await until(() => reports().length === 2)
    expect(reports()).toEqual(['started', 'stopped'])
  })

  it('the visitor’s typing is reported as stopped when the message is sent; without typing, nothing is reported', async () => {
    const { client, states } = await started()
    client.stopTyping()
    client.startTyping()
    client.sendMessage('Hello')
    await until(() => reports().length === 2 && states()[0] === 'queued')
    expect(reports()).toEqual(['started', 'stopped'])
  })

  it('the end of the visitor’s typing is not reported if the report of its start has expired', async () => {
    const { client } = await started()
    client.startTyping()
    await until(() => reports().length === 1)
    await settled()
    clock.advance(9_000)
    client.stopTyping()
    await settled()
    expect(reports()).toEqual(['started'])
  })

  it('typing reports are throttled if the visitor alternately types and deletes', async () => {
    const { client } = await started()
    for (let turns = 0; turns < 50; turns += 1) {
      client.startTyping()
      client.stopTyping()
      await settled().then(() => clock.advance(20))
    }
    expect(reports().length).toBeLessThanOrEqual(4)
  })

  it.each([
    ['a transient failure', { status: 503, code: 'ServiceUnavailable' }, 15_000],
    ['a limit', { status: 429, code: 'RateLimited', retryAfter: 40 }, 40_000],
  ])(
    'typing reports pause after %s; the failure emits no error and is not retried',
    async (_name, failure, silentMs) => {
      const { client, count } = await started()
      server.features.failNext('/typing', failure)
      client.startTyping()
      await until(() => reports().length === 1)
      await settled()
      clock.advance(silentMs - 1_000)
      client.startTyping()
      client.stopTyping()
      await settled()
      expect(reports()).toHaveLength(1)
      clock.advance(2_000)
      client.startTyping()
      await until(() => reports().length === 2)
      expect(count('error')).toBe(0)
    },
  )

  it('typing reports pause for five minutes after the service refused one, and then go on', async () => {
    const { client } = await started()
    server.features.failNext('/typing', { status: 404, code: 'RouteNotAdvertised', retryable: false })
    client.startTyping()
    await until(() => reports().length === 1)
    await settled()
    clock.advance(295_000)
    client.startTyping()
    await settled()
    expect(reports()).toHaveLength(1)
    clock.advance(10_000)
    client.startTyping()
    await until(() => reports().length === 2)
  })

  it('the visitor’s typing is not reported if the capability is off, without a session, or without a network', async () => {
    const { client } = await started({ capabilities: { typing: false } })
    client.startTyping()
    client.stop()
    client.startTyping()
    const harness = await started()
    harness.network.online = false
    harness.client.startTyping()
    await settled()
    expect(reports()).toEqual([])
  })
})

describe('the typing indicator of an agent', () => {
  const anna = { kind: 'agent', displayName: 'Anna Keller' }

  it('an agent’s typing indicator lasts until its stop event', async () => {
    const { client, count } = await started()
    server.conversation('pk_friendly').emit('typing.started', { author: anna })
    await until(() => client.presence().typing.length === 1)
    expect(client.presence().typing).toEqual([anna])
    server.conversation('pk_friendly').emit('typing.stopped', { author: anna })
    await until(() => client.presence().typing.length === 0)
    expect(count('typing.stopped')).toBe(1)
  })

  it('an agent’s typing indicator expires without a stop event, and each start event extends it', async () => {
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
  })

  it('an agent’s typing indicator ends when this agent sends a message, but not when another agent sends one', async () => {
    const { client, bodies } = await started()
    const conversation = server.conversation('pk_friendly')
    conversation.emit('typing.started', { author: anna })
    conversation.agentSays('Me too', 'Ben Roth')
    await until(() => bodies().length === 1)
    expect(client.presence().typing).toEqual([anna])
    conversation.agentSays('Here I am')
    await until(() => client.presence().typing.length === 0)
  })
})

describe('the presence of the client', () => {
  it('the client returns the assigned agent, and activities for assignment, closing and reopening, even after a reload', async () => {
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
  })

  it('the client returns no agent and no activity in a new session', async () => {
    const { client, storage } = await started()
    server.conversation('pk_friendly').emit('agent.assigned', { agent: { displayName: 'Anna Keller' } })
    await until(() => client.presence().agent !== undefined)
    server.endSessions('pk_friendly', 'session.expired', { status: 401, code: 'SessionExpired' })
    await until(() => client.ended() !== undefined)
    expect(storage.getItem('service.widget.1.pk_friendly.features')).toBeNull()
    await client.startNew()
    expect(client.presence().agent).toBeUndefined()
    expect(client.activity()).toEqual([])
  })
})
