import { describe, expect, it } from 'vitest'
import { readCoreConfig, SettingError } from './config.ts'

describe('the settings of deliveries', () => {
  it('leave a lease room for the longest attempt, or the core does not start', () => {
    const lease = (DELIVERY_LEASE_MS: string) =>
      readCoreConfig({ DELIVERY_ATTEMPT_DEADLINE_MS: '20000', DELIVERY_LEASE_MS }).DELIVERY_LEASE_MS
    expect(lease('25000')).toBe(25_000)
    expect(() => lease('24999')).toThrow(SettingError)
    expect(() => lease('24999')).toThrow(/^DELIVERY_LEASE_MS must be at least 5000 more/)
    expect(readCoreConfig({})).toMatchObject({ DELIVERY_ATTEMPT_DEADLINE_MS: 10_000, DELIVERY_LEASE_MS: 20_000 })
  })

  it('name no range that is none, and never its text', () => {
    expect(readCoreConfig({ DELIVERY_ALLOWED_CIDRS: '10.1.0.0/16, fd00:1::/32' })).toBeDefined()
    for (const wrong of ['192.168.77.1/16', '192.168.77.0', 'secret', '192.168.0.0/16,secret']) {
      expect(() => readCoreConfig({ DELIVERY_ALLOWED_CIDRS: wrong })).toThrow(SettingError)
      expect(() => readCoreConfig({ DELIVERY_ALLOWED_CIDRS: wrong })).not.toThrow(wrong)
    }
  })
})
