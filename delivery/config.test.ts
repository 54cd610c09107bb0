import { describe, expect, it } from 'vitest'
import { MissingTokenError } from '../platform/settings/process-settings.ts'
import { SettingError } from '../platform/settings/settings.ts'
import { readDeliveryConfig } from './config.ts'

const token = 'a-service-token-of-some-length'

describe('delivery settings', () => {
  it('the delivery settings have defaults for all settings except the token, which is read from the data folder', () => {
    const config = readDeliveryConfig({}, `${token}\n`)
    expect(config).toMatchObject({
      CORE_URLS: ['http://localhost:8090'],
      DELIVERY_TOKEN: token,
      DELIVERY_CONCURRENCY: 500,
    })
    expect(['8.8.8.8', '127.0.0.1', '10.0.0.1'].map(config.isAddressAllowed)).toEqual([true, false, false])
  })

  it('the token of the environment is used even if the data folder also has a token', () => {
    const env = { DELIVERY_TOKEN: 'from-the-environment', CORE_URLS: 'http://a:1, https://b:2,', DATA_DIR: '' }
    expect(readDeliveryConfig(env, token)).toMatchObject({
      DELIVERY_TOKEN: 'from-the-environment',
      CORE_URLS: ['http://a:1', 'https://b:2'],
      DATA_DIR: '.data',
    })
  })

  it('the delivery settings allow addresses in configured ranges, but never metadata addresses', () => {
    const { isAddressAllowed } = readDeliveryConfig({ DELIVERY_ALLOWED_CIDRS: '10.0.0.0/8, 169.254.0.0/16' }, token)
    expect(['10.0.0.1', '169.254.1.1', '169.254.169.254', '192.168.0.1'].map(isAddressAllowed)).toEqual([
      true,
      true,
      false,
      false,
    ])
  })

  it('readDeliveryConfig throws an error that names the token if it is missing', () => {
    expect(() => readDeliveryConfig({})).toThrow(MissingTokenError)
    expect(() => readDeliveryConfig({})).toThrow('DELIVERY_TOKEN')
  })

  it.each([
    [{ DELIVERY_ALLOWED_CIDRS: '10.0.0.1/8' }, 'DELIVERY_ALLOWED_CIDRS must be address ranges'],
    [{ DELIVERY_ALLOWED_CIDRS: 'intranet' }, 'DELIVERY_ALLOWED_CIDRS must be address ranges'],
    [{ DELIVERY_CONCURRENCY: '0' }, 'DELIVERY_CONCURRENCY must be a whole number from 1 to 10000'],
    [{ DELIVERY_PORT: 'http' }, 'DELIVERY_PORT'],
    [{ LOG_LEVEL: 'loud' }, 'LOG_LEVEL must be one of'],
    [{ CORE_URLS: 'ftp://core' }, 'CORE_URLS'],
    [{ CORE_URLS: 'http://user:pass@core' }, 'CORE_URLS'],
    [{ CORE_URLS: ',' }, 'CORE_URLS'],
    [{ DELIVERY_TOKEN: 'short' }, 'DELIVERY_TOKEN must have at least 16 characters'],
  ])('readDeliveryConfig rejects %j with an error that contains “%s”', (env, why) => {
    expect(() => readDeliveryConfig(env, token)).toThrow(SettingError)
    expect(() => readDeliveryConfig(env, token)).toThrow(why)
  })
})
