import { describe, expect, it } from 'vitest'
import { grantTimes } from './session-record.ts'

const issuedAt = Date.parse('2026-11-20T12:00:00.000Z')
const content = {
  accessGrant: `e30.${btoa(JSON.stringify({ iat: issuedAt / 1000 }))}.sig`,
  renewAfter: '2026-11-20T12:10:00.000Z',
  expiresAt: '2026-11-20T12:15:00.000Z',
  renewableUntil: '2026-11-20T14:15:00.000Z',
}

describe('grantTimes', () => {
  it('grantTimes returns the times of the service if the clocks of browser and service agree', () => {
    expect(grantTimes(content, issuedAt + 900).expiresAtMs - issuedAt).toBe(900_000)
  })

  it.each([3_600_000, -3_600_000])(
    'grantTimes shifts the times by the difference if the clock of the browser is %i ms ahead',
    (offsetMs) => {
      const askedAt = issuedAt + offsetMs
      expect(grantTimes(content, askedAt).renewAtMs - askedAt).toBe(600_000)
    },
  )

  it.each(['opaque', 'a.b.c', `e30.${btoa('{"iat":"soon"}')}.sig`])(
    'grantTimes returns the times of the service if the iat claim of the grant is unreadable',
    (accessGrant) => {
      expect(grantTimes({ ...content, accessGrant }, issuedAt + 99_000).expiresAtMs - issuedAt).toBe(900_000)
    },
  )
})
