import { describe, expect, it } from 'vitest'
import type { Session } from '../sessions/model.ts'
import {
  anonymous,
  firstGrant,
  type Given,
  identificationInMemory,
  newConversationId,
  newIdentity,
  newSessionId,
  now,
  operation,
  rejectsWith,
  verified,
} from '../test/identification.ts'

describe('the steps of a first identification', () => {
  it('store the new session with planned ids, close the old session, then update the conversation', async () => {
    const { identify, steps, details, operations } = identificationInMemory()
    expect(await identify()).toEqual({
      sessionId: newSessionId,
      conversationId: newConversationId,
      identity: newIdentity,
      grant: firstGrant,
      continuity: { state: 'new' },
    })
    expect(steps).toEqual([
      'consume nonce',
      'reconcile sub_ada',
      'insert session',
      'append',
      'replace',
      'decide conversation',
      'inherit consent new',
      'wake up ses_1',
    ])
    expect(operations).toMatchObject([
      {
        scope: ['POST /sessions/identify', 'ses_1'],
        sessionId: 'ses_1',
        key: 'key',
        input: { assertion: 'ada' },
        keptFor: 300,
      },
    ])
    expect(details.get('consume nonce')).toEqual({
      nonce: { publicSiteKey: 'pk_1', nonce: 'nonce', operation, expiresAt: new Date(now + 150_000) },
      at: new Date(now),
    })
    expect(details.get('append')).toEqual({
      conversationId: 'cnv_1',
      type: 'session.identified',
      sessionId: 'ses_1',
      operationKey: 'session ses_1 session.identified',
      inputHash: 'session.identified',
    })
    expect(details.get('replace')).toEqual({
      sessionId: 'ses_1',
      successor: { operation, sessionId: newSessionId },
      identity: newIdentity,
    })
    expect(details.get('decide conversation')).toBe('ses_1')
  })

  it('copy the page context, and keep the id of the anonymous session so that repeated operations are found', async () => {
    const { identify, details } = identificationInMemory()
    await identify()
    const { status, renewal, ...facts } = anonymous
    expect(details.get('insert session')).toEqual({
      ...facts,
      status: 'active',
      sessionId: newSessionId,
      conversationId: newConversationId,
      identity: newIdentity,
      provisionalFor: 'ses_1',
      operationSessionId: 'ses_1',
      createdAt: new Date(now),
      grantExpiresAt: new Date(now + 600_000),
      renewableUntil: new Date(now + 1_800_000),
      endsAt: new Date(now + 7_200_000),
      renewal: { generation: 0, previousUntil: new Date(now) },
    })
  })

  it.each(['pageContext', 'pageContextAt'] as const)(
    'copy no page context if the anonymous session has no %s',
    async (field) => {
      const { identify, details } = identificationInMemory({ session: { ...anonymous, [field]: undefined } })
      await identify()
      const created = details.get('insert session')
      expect(created).not.toHaveProperty('pageContext')
      expect(created).not.toHaveProperty('pageContextAt')
    },
  )

  it('store the new session as the last session of the anonymous conversation if that conversation continues', async () => {
    const { identify, steps, details } = identificationInMemory({ openConversationId: 'cnv_1' })
    expect(await identify()).toMatchObject({ conversationId: 'cnv_1', continuity: { state: 'continued' } })
    expect(steps.slice(4)).toEqual([
      'replace',
      'decide conversation',
      'append',
      'set last session',
      'inherit consent new',
      'wake up ses_1',
    ])
    expect(details.get('set last session')).toEqual(['cnv_1', { sequence: 9, sessionId: newSessionId }])
  })

  it('continue an open conversation that the verified visitor already has', async () => {
    const { identify, steps } = identificationInMemory({ openConversationId: 'cnv_2' })
    expect(await identify()).toMatchObject({ conversationId: 'cnv_2', continuity: { state: 'continued' } })
    expect(steps.slice(4)).toEqual(['replace', 'decide conversation', 'inherit consent new', 'wake up ses_1'])
  })
})

describe('an identification by a closed session', () => {
  const closedBy = (by: string): Session => ({
    ...anonymous,
    status: 'closed',
    successor: { operation: by, sessionId: 'ses_2' },
  })
  const successor = { ...verified, sessionId: 'ses_2' }
  const before: Given['before'] = (_, sessions) => sessions.set('ses_2', successor)

  it('completes the identification that closed the session', async () => {
    const { identify, clear, steps, sessions } = identificationInMemory({ session: closedBy(operation) })
    sessions.set('ses_2', { ...successor, conversationId: 'cnv_2' })
    expect(await identify()).toMatchObject({ sessionId: 'ses_2', continuity: { state: 'continued' } })
    expect(steps).toEqual(['decide conversation', 'inherit consent ses_2', 'wake up ses_1'])
    expect(await clear()).toMatchObject({ sessionId: 'ses_2' })
  })

  it('is rejected if another operation closed the session', async () => {
    await rejectsWith(identificationInMemory({ session: closedBy('op_2'), before }).identify(), 'SESSION_CLOSED')
    await rejectsWith(
      identificationInMemory({ session: { ...anonymous, status: 'closed' } }).identify(),
      'SESSION_CLOSED',
    )
    await rejectsWith(identificationInMemory({ session: closedBy('op_2'), before }).clear(), 'SESSION_CLOSED')
  })
})

describe('an identification', () => {
  it('is rejected for an ended session and for a removed session', async () => {
    const revoked = identificationInMemory({ session: { ...anonymous, status: 'revoked' } })
    await rejectsWith(revoked.identify(), 'SESSION_REVOKED')
    await rejectsWith(revoked.clear(), 'SESSION_REVOKED')
    const removed = identificationInMemory()
    removed.sessions.clear()
    await rejectsWith(removed.identify(), 'GRANT_INVALID')
    expect([...revoked.steps, ...removed.steps]).toEqual([])
  })

  it('is rejected for a banned visitor, and its assertion stays unused', async () => {
    const { identify, steps } = identificationInMemory({ bannedIds: ['sub_ada'] })
    await rejectsWith(identify(), 'VISITOR_BANNED')
    expect(steps).toEqual([])
  })

  it('is rejected if another operation has already used its assertion', async () => {
    const { identify, steps } = identificationInMemory({ nonceOf: 'op_2' })
    await rejectsWith(identify(), 'IDENTITY_ASSERTION_REPLAYED')
    expect(steps).toEqual(['consume nonce'])
  })

  it.each(['vis_1', 'sub_ada'])(
    'bans the new session if %s is banned before the new session is stored',
    async (banned) => {
      const bannedIds: string[] = []
      const before = (step: string) => step === 'insert session' && bannedIds.push(banned)
      const { identify, steps, sessions } = identificationInMemory({ bannedIds, before })
      await rejectsWith(identify(), 'VISITOR_BANNED')
      expect(steps.at(-1)).toBe('end new banned')
      expect(sessions.get('ses_1')?.status).toBe('active')
    },
  )

  it.each([
    ['closed by another operation', { status: 'closed', successor: { operation: 'op_2', sessionId: 'ses_2' } }],
    ['closed by the visitor', { status: 'closed' }],
  ] as const)('closes its new session if the old session was %s first', async (_, update) => {
    const before: Given['before'] = (step, sessions) =>
      step === 'replace' && sessions.set('ses_1', { ...anonymous, ...update })
    const { identify, steps } = identificationInMemory({ before })
    await rejectsWith(identify(), 'SESSION_CLOSED')
    expect(steps.at(-1)).toBe('end new closed')
  })

  it('fails with `VISITOR_BANNED` if a ban has ended the old session first', async () => {
    const before: Given['before'] = (step, sessions) =>
      step === 'replace' && sessions.set('ses_1', { ...anonymous, status: 'banned' })
    await rejectsWith(identificationInMemory({ before }).identify(), 'VISITOR_BANNED')
  })

  it('returns the new session if a concurrent run of the same operation has closed the old session', async () => {
    const successor = { operation, sessionId: newSessionId }
    const before: Given['before'] = (step, sessions) =>
      step === 'replace' && sessions.set('ses_1', { ...anonymous, status: 'closed', successor })
    const { identify, steps } = identificationInMemory({ before })
    expect(await identify()).toMatchObject({ sessionId: newSessionId })
    expect(steps).not.toContain('end new closed')
  })
})
