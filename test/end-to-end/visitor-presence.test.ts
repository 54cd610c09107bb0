import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { Presence } from '#proto/messaging/v1/messaging_pb.js'
import { itLong } from '../support/is-long.ts'
import { type LocalStack, startLocalStack } from '../support/local-stack.ts'
import { newSite } from '../support/resources.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { followPresence } from '../support/visitor-presence.ts'

const database = testDatabase()
let stack: LocalStack

beforeAll(async () => {
  stack = await startLocalStack({ database, cores: 2, gateways: 2, env: { RATE_LIMIT_FACTOR: '1000' } })
})

describe('the presence of a visitor over two gateways and two cores', () => {
  itLong('reaches operators on both cores, whichever gateway has the stream or receives the report', async () => {
    const inboxes = [0, 1].map((core) => followPresence(stack.operator(core), stack.demo.workspaceId))
    const visitor = await stack.newVisitor()
    const { conversationId } = visitor.session
    const shows = (state: Presence) =>
      until(`presence ${state}`, () => inboxes.every((inbox) => inbox.of(conversationId) === state))

    const stream = await visitor.openStream({ via: stack.gateways[0]!.url })
    await shows(Presence.AWAY)
    const report = (state: string, tab = 'a') =>
      visitor.call('POST', '/presence', { body: { tab, state }, via: stack.gateways[1]!.url })
    expect((await report('here')).status).toBe(204)
    await shows(Presence.HERE)
    await report('here', 'b')
    await report('away')
    await delay(700)
    await shows(Presence.HERE)
    await report('away', 'b')
    await shows(Presence.AWAY)
    stream.close()
    await shows(Presence.GONE)

    const late = followPresence(stack.operator(1), stack.demo.workspaceId)
    await until('the first presence frame', () => late.isComplete())
    expect(late.of(conversationId)).toBe(Presence.GONE)
    for (const inbox of [...inboxes, late]) inbox.close()
  })

  it('is not sent to operators of another workspace, even if a visitor of that workspace uses the same tab id', async () => {
    const operator = stack.operator()
    const elsewhere = await newSite(operator, [stack.demo.origin])
    const [inbox, other] = [stack.demo.workspaceId, elsewhere.workspaceId].map((id) => followPresence(operator, id))
    const visitor = await stack.newVisitor()
    const stranger = await stack.newVisitor({ siteKey: elsewhere.siteKey })
    for (const each of [visitor, stranger]) {
      await each.openStream()
      await each.call('POST', '/presence', { body: { tab: 'same', state: 'here' } })
    }
    await until('both', () => inbox!.of(visitor.session.conversationId) === Presence.HERE && other!.size() > 0)
    expect(inbox!.of(stranger.session.conversationId)).toBe(Presence.GONE)
    expect(other!.size()).toBe(1)
    for (const each of [inbox, other]) each!.close()
  })

  it('cannot be reported with an invalid tab or state, or after the session is revoked', async () => {
    const visitor = await stack.newVisitor()
    const body = { tab: 'a', state: 'here' }
    for (const invalid of [{}, { ...body, tab: '' }, { ...body, tab: 'a b' }, { ...body, state: 'gone' }])
      expect((await visitor.call('POST', '/presence', { body: invalid })).body.code).toBe('ValidationFailed')
    await stack.operator().sessions.revokeSession({ sessionId: visitor.session.sessionId })
    await until('the refusal', async () => {
      const { body: answer } = await visitor.call('POST', '/presence', { body })
      return answer?.code === 'SessionRevoked'
    })
  })
})
