import { describe, expect, it } from 'vitest'
import { SettingError } from '../platform/settings/settings.ts'
import { readCoreConfig } from './config.ts'

describe('the delivery settings', () => {
  it('allow a lease shorter than the attempt deadline, but not shorter than a second', () => {
    const lease = (DELIVERY_LEASE_MS: string) => readCoreConfig({ DELIVERY_LEASE_MS }).DELIVERY_LEASE_MS
    expect(lease('1000')).toBe(1000)
    expect(() => lease('999')).toThrow(SettingError)
    expect(readCoreConfig({})).toMatchObject({ DELIVERY_ATTEMPT_DEADLINE_MS: 10_000, DELIVERY_LEASE_MS: 5_000 })
  })

  it('reject invalid address ranges with an error that does not quote them', () => {
    expect(readCoreConfig({ DELIVERY_ALLOWED_CIDRS: '10.1.0.0/16, fd00:1::/32' })).toBeDefined()
    for (const wrong of ['192.168.77.1/16', '192.168.77.0', 'secret', '192.168.0.0/16,secret']) {
      expect(() => readCoreConfig({ DELIVERY_ALLOWED_CIDRS: wrong })).toThrow(SettingError)
      expect(() => readCoreConfig({ DELIVERY_ALLOWED_CIDRS: wrong })).not.toThrow(wrong)
    }
  })
})
