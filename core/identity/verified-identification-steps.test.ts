import { describe, expect, it } from 'vitest'
import {
  firstGrant,
  type Given,
  identificationInMemory,
  identityOf,
  newConversationId,
  newIdentity,
  newSessionId,
  now,
  operation,
  rejectsWith,
  seconds,
  verified,
} from '../test/identification.ts'

describe('the steps of an identification by a verified session', () => {
  it('refresh the session and give it a new grant of the same generation if the visitor is the same', async () => {
    const { identify, steps, details } = identificationInMemory({ session: verified })
    expect(await identify()).toEqual({
      sessionId: 'ses_1',
      conversationId: 'cnv_1',
      identity: newIdentity,
      grant: { ...firstGrant, generation: 4 },
      continuity: { state: 'continued' },
    })
    expect(steps).toEqual(['consume nonce', 'refresh identity', 'wake up ses_1'])
    expect(details.get('refresh identity')).toEqual({
      identity: newIdentity,
      grantExpiresAt: new Date(now + 600_000),
      renewableUntil: new Date(now + 1_800_000),
    })
  })

  it('refresh the session without using the assertion again if the process that used it died', async () => {
    const identity = identityOf('ada', operation)
    const { identify, steps, details } = identificationInMemory({ session: { ...verified, identity } })
    await identify()
    expect(steps).toEqual(['refresh identity', 'wake up ses_1'])
    expect(details.get('refresh identity')).toMatchObject({ identity })
  })

  it.each([
    ['closed', 'SESSION_CLOSED'],
    ['banned', 'VISITOR_BANNED'],
  ] as const)('fail with the error of the session if it is %s before the refresh', async (status, code) => {
    const before: Given['before'] = (step, sessions) =>
      step === 'refresh identity' && sessions.set('ses_1', { ...verified, status })
    const { identify, steps } = identificationInMemory({ session: verified, before })
    await rejectsWith(identify(), code)
    expect(steps).not.toContain('wake up ses_1')
  })

  it('create a session and a conversation without data of the old session if the assertion names another visitor', async () => {
    const { identify, steps, details } = identificationInMemory({ session: verified })
    expect(await identify('grace')).toMatchObject({ sessionId: newSessionId, continuity: { state: 'new' } })
    expect(steps).toEqual([
      'consume nonce',
      'reconcile sub_grace',
      'insert conversation',
      'insert session',
      'replace',
      'decide conversation',
      'inherit consent new',
      'wake up ses_1',
    ])
    expect(details.get('insert conversation')).toBe(newConversationId)
    expect(details.get('replace')).toMatchObject({ identity: undefined })
    const created = details.get('insert session')
    expect(created).toMatchObject({ locale: 'de', clientInstanceId: 'browser', provisionalFor: 'ses_1' })
    for (const field of ['pageContext', 'pageContextAt', 'operationSessionId'])
      expect(created).not.toHaveProperty(field)
  })

  it('create an anonymous session and a new conversation if the identity is cleared', async () => {
    const { clear, steps, details, operations } = identificationInMemory({ session: verified })
    expect(await clear()).toEqual({
      sessionId: newSessionId,
      conversationId: newConversationId,
      identity: undefined,
      grant: firstGrant,
      continuity: { state: 'new' },
    })
    expect(steps).toEqual(['insert conversation', 'insert session', 'replace', 'decide conversation', 'wake up ses_1'])
    expect(details.get('insert session')).toMatchObject({ identity: undefined, provisionalFor: undefined })
    expect(details.get('check bans')).toEqual(['vis_1'])
    expect(operations).toMatchObject([
      { scope: ['DELETE /sessions/identify', 'ses_1'], sessionId: 'ses_1', key: 'key', input: {}, keptFor: 300 },
    ])
  })

  it('ban the new anonymous session if the visitor is banned before that session is stored', async () => {
    const bannedIds: string[] = []
    const before = (step: string) => step === 'insert session' && bannedIds.push('vis_1')
    const { clear, steps } = identificationInMemory({ session: verified, bannedIds, before })
    await rejectsWith(clear(), 'VISITOR_BANNED')
    expect(steps.at(-1)).toBe('end new banned')
  })
})

describe('clearing the identity of an anonymous session', () => {
  it('changes nothing and returns the grant of the request', async () => {
    const { clear, steps } = identificationInMemory()
    expect(await clear()).toEqual({
      sessionId: 'ses_1',
      conversationId: 'cnv_1',
      identity: undefined,
      grant: { issuedAt: seconds - 10, expiresAt: seconds + 20, renewableUntil: seconds + 30, generation: 4 },
      continuity: { state: 'continued' },
    })
    expect(steps).toEqual([])
  })
})
