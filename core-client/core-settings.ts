import { filledText, integer, SettingError, splitList, text } from '../platform/settings/settings.ts'

export const coreTlsSettings = {
  CORE_CA: text('File with the authorities (PEM) of the cores’ certificates; default: those of Node.'),
  CLIENT_CERT: text('File with the client certificate (PEM) for cores that require one. Reloaded when it changes.'),
  CLIENT_KEY: text('File with the key of the client certificate (PEM).'),
}

export const corePoolSettings = {
  CORE_URLS: filledText(
    'http://localhost:8090',
    'Cores, separated by commas. `dns://core:8090` stands for every address of the name, looked up regularly.',
  ),
  ...coreTlsSettings,
  CORE_DEADLINE_MS: integer(10_000, 100, 120_000, 'Time limit for one call to a core.'),
}

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
