import { described, filledText, integer, SettingError, splitList, text } from '../platform/settings/settings.ts'
import texts from './settings.json' with { type: 'json' }

export const coreTlsSettings = { CORE_CA: text(), CLIENT_CERT: text(), CLIENT_KEY: text() }

export const corePoolSettings = described(
  {
    CORE_URLS: filledText('http://localhost:8090'),
    ...coreTlsSettings,
    CORE_DEADLINE_MS: integer(10_000, 100, 120_000),
  },
  texts,
)

/** Throws `SettingError` if an entry of `CORE_URLS` is invalid. */
export function parseCoreUrls(list: string): string[] {
  const urls = splitList(list)
  if (urls.length > 0 && urls.every(isCoreUrl)) return urls
  throw new SettingError(
    'CORE_URLS must be one or more http, https or dns URLs without user info, separated by commas; dns URLs need a port, like dns://core:8090',
  )
}

function isCoreUrl(text: string) {
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.hostname === '') return false
  return url.protocol === 'dns:' ? url.port !== '' : /^https?:$/.test(url.protocol)
}
