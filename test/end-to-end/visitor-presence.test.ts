import { describe, expect, it } from 'vitest'
import { Presence } from '#proto/messaging/v1/messaging_pb.js'
import { useLocalStack } from '../support/local-stack.ts'
import { newSite } from '../support/resources.ts'
import { until } from '../support/until.ts'
import { followPresence } from '../support/visitor-presence.ts'

const stack = useLocalStack({ cores: 2, gateways: 2, env: { RATE_LIMIT_FACTOR: '1000' } })

describe('the presence of a visitor over two gateways and two cores', () => {
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
