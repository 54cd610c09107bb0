import { describe, expect, it } from 'vitest'
import { GRANT, SITE } from '../test/test-core.ts'
import { startTestGateway } from '../test/test-gateway.ts'

const body = { policyVersion: 'v1', decision: 'granted' }

describe('POST /sessions/consent', () => {
  it('forwards the decision to the core, and answers with the decision and its time', async () => {
    const { call, core } = await startTestGateway()
    const answer = await call('POST', '/sessions/consent', { body, headers: { 'idempotency-key': 'op-1' } })
    expect(answer.status).toBe(200)
    const decided = (await answer.json()) as Record<string, string>
    expect(Object.keys(decided).toSorted()).toEqual(['decidedAt', 'decision', 'policyVersion'])
    expect(decided).toMatchObject(body)
    expect(core.calls.at(-1)).toMatchObject({
      method: 'recordConsent',
      request: {
        policyVersion: 'v1',
        decision: 1,
        idempotencyKey: 'op-1',
        credentials: { accessGrant: GRANT, origin: SITE },
      },
    })
    const again = await call('POST', '/sessions/consent', {
      body: { ...body, decision: 'denied' },
      headers: { 'idempotency-key': 'again' },
    })
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    expect(await again.json()).toMatchObject({ decision: 'denied' })
  })

  it.each([
    ['no version', { decision: 'granted' }],
    ['an empty version', { ...body, policyVersion: '' }],
    ['a version with a line break', { ...body, policyVersion: 'a\nb' }],
    ['a long version', { ...body, policyVersion: 'v'.repeat(65) }],
    ['another decision', { ...body, decision: 'maybe' }],
    ['an unknown field', { ...body, policyUrl: 'https://shop.example' }],
  ])('rejects %s', async (_, wrong) => {
    const { call, core } = await startTestGateway()
    const answer = await call('POST', '/sessions/consent', { body: wrong, headers: { 'idempotency-key': 'op-1' } })
    expect(await answer.json()).toMatchObject({ code: 'ValidationFailed' })
    expect(core.count('recordConsent')).toBe(0)
  })
})
