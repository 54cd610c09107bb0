import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { SessionContent } from '../sessions/model.ts'
import { visitorAccessOf } from '../sessions/visitor-access.ts'
import { codeOf, type TestCores, testCores } from '../test/cores.ts'
import { site } from '../test/visitor-credentials.ts'
import { renewSession } from './sessions.ts'

const cores = testCores({ count: 2 })

const grantLifetime = 900

function renew(
  session: SessionContent,
  {
    core = cores.core,
    key = randomUUID() as string,
    ...change
  }: Partial<Parameters<typeof renewSession>[1]> & {
    core?: TestCores['core']
    key?: string
  } = {},
): Promise<SessionContent> {
  const { sessionId, renewalToken, accessGrant } = session
  const credentials = { accessGrant, origin: site }
  return renewSession(core, { credentials, sessionId, renewalToken, idempotencyKey: key, ...change }).then(
    ({ content }) => content,
  )
}

describe('a renewal', () => {
  it('returns a grant that expires later, and a new token', async () => {
    const session = await cores.newSession()
    cores.advance(600)
    const renewed = await renew(session, { core: cores.other })
    expect(renewed.sessionId).toBe(session.sessionId)
    expect(renewed.renewalToken).not.toBe(session.renewalToken)
    expect(renewed.expiresAt.getTime() - session.expiresAt.getTime()).toBeGreaterThanOrEqual(599_000)
    expect(renewed.renewAfter.getTime()).toBe(renewed.expiresAt.getTime() - 300_000)
    expect(renewed.renewableUntil.getTime()).toBe(renewed.expiresAt.getTime() + 7_200_000)
    cores.advance(600)
    expect(await codeOf(cores.send(session, 'with the old grant'))).toBe('GrantExpired')
    expect(await codeOf(cores.send(renewed, 'with the new one'))).toBe('ok')
  })

  it('keeps the identity of the session', async () => {
    const session = await cores.identify(await cores.newSession(), cores.sign({ name: 'Ada' }))
    expect(await renew(session)).toMatchObject({ identityState: 'verified', displayName: 'Ada' })
  })

  it('returns the same credentials for the same key, and rejects the key with another input', async () => {
    const session = await cores.newSession()
    const key = randomUUID()
    const first = await renew(session, { key })
    expect(await renew(session, { key, core: cores.other })).toEqual(first)
    expect(await codeOf(renew(session, { key, renewalToken: first.renewalToken }))).toBe('IdempotencyConflict')
  })

  it('rejects a token that is two generations old, and the previous token after its grant has ended', async () => {
    const session = await cores.newSession()
    const second = await renew(session)
    const third = await renew(second)
    expect(await codeOf(renew(third, { renewalToken: session.renewalToken }))).toBe('GrantInvalid')
    expect(await codeOf(renew(third, { renewalToken: second.renewalToken }))).toBe('ok')
    cores.advance(600)
    const fourth = await renew(third)
    cores.advance(grantLifetime - 600 + 1)
    expect(await codeOf(renew(fourth, { renewalToken: third.renewalToken }))).toBe('GrantInvalid')
    expect(await codeOf(renew(fourth))).toBe('ok')
  })

  it('fails with the session’s error code when the session ends during the renewal', async () => {
    const session = await cores.newSession()
    // This call caches the live session. The update below writes no wake-up, so the core keeps the
    // cached session.
    await visitorAccessOf(cores.core).authorize({ accessGrant: session.accessGrant, origin: site })
    await cores.core.database.collections.sessions.updateOne(
      { _id: session.sessionId },
      { $set: { status: 'revoked' } },
    )
    expect(await codeOf(renew(session))).toBe('SessionRevoked')
  })
})
