import { expect } from 'vitest'
import { bearer } from './client.ts'
import { rule } from './rule.ts'
import type { Suite } from './suite.ts'

/** Tests of the rating after an operator has closed the conversation. */
export function ratingRules(suite: () => Suite): void {
  rule(
    'C4.33',
    async () => {
      const { client, operator, stack } = suite().roomy
      const visitor = await client.visitor()
      const { conversationId } = visitor.session
      const headers = { ...bearer(visitor), 'idempotency-key': 'rating' }
      const body = { score: 5, comment: 'Quick and friendly' }
      const stateOf = async () => (await client.call('GET', '/messages', { headers: bearer(visitor) })).body.rating
      await visitor.send('hello')
      await client.fails('RatingNotRequested', 'POST', '/ratings', { headers, body })
      await operator.messaging.closeConversation({ conversationId, requestRating: true })
      expect(await stateOf()).toBe('requested')
      for (const bad of [
        {},
        { score: 0 },
        { score: 6 },
        { score: 1.5 },
        { score: 5, comment: '' },
        { score: 5, more: 1 },
      ])
        await client.fails('ValidationFailed', 'POST', '/ratings', { headers: bearer(visitor), body: bad })
      await client.fails('IdempotencyKeyInvalid', 'POST', '/ratings', {
        headers: { ...headers, 'idempotency-key': 'a b' },
        body,
      })
      const first = await client.call('POST', '/ratings', { headers, body })
      expect([first.status, first.body]).toEqual([
        201,
        { score: 5, sequence: expect.any(Number), ratedAt: expect.any(String) },
      ])
      const again = await client.call('POST', '/ratings', { headers, body, via: stack.gateways[1]!.url })
      expect([again.body, again.headers.get('idempotency-replayed')]).toEqual([first.body, 'true'])
      await client.fails('IdempotencyConflict', 'POST', '/ratings', { headers, body: { score: 1 } })
      await client.fails('RatingAlreadyGiven', 'POST', '/ratings', { headers: bearer(visitor), body })
      expect(await stateOf()).toBe('given')
      await visitor.send('one more thing')
      expect(await stateOf()).toBeUndefined()
      await client.fails('RatingNotRequested', 'POST', '/ratings', { headers: bearer(visitor), body })
    },
    'a rating is accepted once after a closing that asks for it',
  )

  rule('E.RatingNotRequested', async () => {
    const { client, operator } = suite().roomy
    const visitor = await client.visitor()
    await visitor.send('hello')
    await operator.messaging.closeConversation({ conversationId: visitor.session.conversationId })
    await client.fails('RatingNotRequested', 'POST', '/ratings', { headers: bearer(visitor), body: { score: 5 } })
  })

  rule('E.RatingAlreadyGiven', async () => {
    const { client, operator, stack } = suite().roomy
    const visitor = await client.visitor()
    await visitor.send('hello')
    const { conversationId } = visitor.session
    await operator.messaging.closeConversation({ conversationId, requestRating: true })
    const request = { headers: bearer(visitor), body: { score: 5 } }
    const answers = await Promise.all(
      stack.gateways.map(({ url }) => client.call('POST', '/ratings', { ...request, via: url })),
    )
    expect(answers.map(({ status }) => status).filter((status) => status === 201)).toHaveLength(1)
    await client.fails('RatingAlreadyGiven', 'POST', '/ratings', request)
  })
}
