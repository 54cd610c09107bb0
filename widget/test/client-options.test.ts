import { expect, it } from 'vitest'
import { createServiceClient, WidgetError } from '../src/client-entry.ts'
import { createServiceWidgetLoader } from '../src/loader-entry.ts'

const valid = { siteKey: 'pk_friendly', apiBaseUrl: 'https://chat.example' }

it.each([
  [undefined, 'site_key_missing'],
  [{}, 'site_key_missing'],
  [{ ...valid, siteKey: '' }, 'site_key_missing'],
  [{ ...valid, siteKey: 'pk friendly' }, 'site_key_invalid'],
  [{ ...valid, siteKey: 'x'.repeat(129) }, 'site_key_invalid'],
  [{ ...valid, siteKey: { key: 'pk' } }, 'site_key_invalid'],
  [{ siteKey: 'pk_friendly' }, 'api_base_url_missing'],
  [{ ...valid, apiBaseUrl: null }, 'api_base_url_missing'],
  [{ ...valid, apiBaseUrl: 'chat.example' }, 'api_base_url_invalid'],
  [{ ...valid, apiBaseUrl: 'https://' }, 'api_base_url_invalid'],
  [{ ...valid, apiBaseUrl: 'https://chat.example:port' }, 'api_base_url_invalid'],
  [{ ...valid, apiBaseUrl: 'ftp://chat.example' }, 'api_base_url_invalid'],
  [{ ...valid, apiBaseUrl: 'https://user:word@chat.example' }, 'api_base_url_invalid'],
  [{ ...valid, apiBaseUrl: 'https://chat.example?tenant=1' }, 'api_base_url_invalid'],
])('the options %j are refused with %s', (options, code) => {
  for (const create of [createServiceClient, createServiceWidgetLoader]) {
    expect(() => create(options as typeof valid)).toThrow(WidgetError)
    expect(() => create(options as typeof valid)).toThrow(expect.objectContaining({ code }))
  }
})

it.each(['https://chat.example', 'https://chat.example/', 'http://localhost:8080', 'HTTPS://chat.example/base'])(
  'the base URL %s is accepted',
  (apiBaseUrl) => {
    expect(() => createServiceClient({ ...valid, apiBaseUrl })).not.toThrow()
  },
)
