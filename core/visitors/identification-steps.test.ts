import { describe, expect, it } from 'vitest'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { Session } from './model.ts'
import {
  anonymous,
  type Given,
  identificationInMemory,
  identityOf,
  newConversationId,
  newSessionId,
  now,
  operation,
  seconds,
  verified,
} from './test-identification.ts'

const rejectsWith = (attempt: Promise<unknown>, code: keyof typeof ErrorCode) =>
  expect(attempt).rejects.toMatchObject({ code: ErrorCode[code] })

const firstGrant = { issuedAt: seconds, expiresAt: seconds + 600, renewableUntil: seconds + 1800, generation: 0 }
const newIdentity = {
  externalSubject: 'ada',
  subjectId: 'sub_ada',
  displayName: 'A',
  operation,
  verifiedAt: new Date(now),
}

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
